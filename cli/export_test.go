package cli

// OnTerminal makes streams terminals of so many columns, 0 for none.
func (o *Options) OnTerminal(columns int) {
	o.terminal = func(any) (int, bool) { return columns, columns > 0 }
}

// Help is what --help writes about each command, by its path.
func Help() map[string]string {
	texts := map[string]string{}
	s := newSession(nil, &Options{Name: "runlane", Args: []string{}})
	var walk func(cmd *command, path string)
	walk = func(cmd *command, path string) {
		if cmd.hidden {
			return
		}
		texts[path] = s.help(cmd, path)
		for _, below := range cmd.below {
			next := below.name
			if path != "" {
				next = path + " " + below.name
			}
			walk(below, next)
		}
	}
	walk(commandTree(), "")
	return texts
}

// Paths are those of all commands, in the order of help.
func Paths() []string {
	var paths []string
	var walk func(cmd *command, path string)
	walk = func(cmd *command, path string) {
		if cmd.hidden {
			return
		}
		paths = append(paths, path)
		for _, below := range cmd.below {
			next := below.name
			if path != "" {
				next = path + " " + below.name
			}
			walk(below, next)
		}
	}
	walk(commandTree(), "")
	return paths
}

// Deviation and ClockTolerance are doctor's judgement of a clock.
var Deviation = deviation

// ClockTolerance, see Deviation.
const ClockTolerance = clockTolerance

// ProgramName is the default of Options.Name.
var ProgramName = programName
