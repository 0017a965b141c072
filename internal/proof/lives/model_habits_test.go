package lives

var modelHabits = []*habit{
	{name: "anything", tasks: tasks, outcomes: modelOutcomes},
	{
		name: "a full queue", tasks: []*task{taskOf("slot"), taskOf("slot"), taskOf("slot"), taskOf("again")},
		outcomes: modelOutcomes, more: map[string]int{"begin an attempt": 10, "end an attempt": 6, "trigger": 6, "batch": 0, "cancel": 4},
	},
	{
		name: "dying workers", tasks: []*task{taskOf("once"), taskOf("slot"), taskOf("exact")},
		outcomes: []string{kills, kills, kills, fails, releases},
		more: map[string]int{
			"deliver astray": 20, "begin an attempt": 6, "advance to": 20, "tick": 5, "trigger": 6, "run now": 6, "prune": 0, "batch": 0, "drain": 0, "cancel": 2,
		},
	},
	{
		name: "schedules", tasks: tasks[:1], outcomes: modelOutcomes, scheduled: true,
		more: map[string]int{
			"trigger": 2, "batch": 0, "run now": 0, "pause a schedule": 4, "resume a schedule": 6, "fire a schedule": 3, "advance": 25, "tick": 30, "deploy": 10,
		},
	},
	{
		name: "a bad transport", tasks: tasks[:5], outcomes: modelOutcomes,
		more: map[string]int{"break the transport": 8, "requeue": 8, "relay": 8, "advance to": 12, "refuse for long": 12, "batch": 0},
	},
}
