package core_test

// modelHabit is what happens often in one life, so that rare things come together.
type modelHabit struct {
	name      string
	tasks     []*modelTask
	outcomes  []string
	more      map[string]int // weights of steps
	scheduled bool
	steps     []int // as often as their weights say
}

var modelHabits = []*modelHabit{
	{name: "anything", tasks: modelTasks, outcomes: modelOutcomes},
	{
		name: "a full queue", tasks: []*modelTask{modelTaskOf("slot"), modelTaskOf("slot"), modelTaskOf("slot"), modelTaskOf("again")},
		outcomes: modelOutcomes, more: map[string]int{"begin an attempt": 10, "end an attempt": 6, "trigger": 6, "batch": 0, "cancel": 4},
	},
	{
		name: "dying workers", tasks: []*modelTask{modelTaskOf("once"), modelTaskOf("slot"), modelTaskOf("exact")},
		outcomes: []string{outcomeDies, outcomeDies, outcomeDies, outcomeFail, outcomeRelease},
		more: map[string]int{
			"deliver astray": 20, "begin an attempt": 6, "advance to": 20, "tick": 5, "trigger": 6, "run now": 6, "prune": 0, "batch": 0, "drain": 0, "cancel": 2,
		},
	},
	{
		name: "schedules", tasks: modelTasks[:1], outcomes: modelOutcomes, scheduled: true,
		more: map[string]int{
			"trigger": 2, "batch": 0, "run now": 0, "pause a schedule": 4, "resume a schedule": 6, "fire a schedule": 3, "advance": 25, "tick": 30, "deploy": 10,
		},
	},
	{
		name: "a bad transport", tasks: modelTasks[:5], outcomes: modelOutcomes,
		more: map[string]int{"break the transport": 8, "requeue": 8, "relay": 8, "advance to": 12, "refuse for long": 12, "batch": 0},
	},
}

func init() {
	for _, habit := range modelHabits {
		for i, step := range modelSteps {
			weight := step.weight
			if other, set := habit.more[step.name]; set {
				weight = other
			}
			for range weight {
				habit.steps = append(habit.steps, i)
			}
		}
	}
}
