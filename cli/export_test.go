package cli

import "strings"

// OnTerminal makes streams terminals of so many columns, 0 for none.
func (o *Options) OnTerminal(columns int) {
	o.terminal = func(any) (int, bool) { return columns, columns > 0 }
}

// eachCommand visits the commands that are not hidden, in the order of help.
func eachCommand(visit func(cmd *command, path string)) {
	var walk func(cmd *command, path string)
	walk = func(cmd *command, path string) {
		if cmd.hidden {
			return
		}
		visit(cmd, path)
		for _, below := range cmd.below {
			walk(below, strings.TrimSpace(path+" "+below.name))
		}
	}
	walk(commandTree(), "")
}

// Help is what --help writes about each command, by its path.
func Help() map[string]string {
	texts := map[string]string{}
	s := newSession(nil, &Options{Name: "runlane", Args: []string{}})
	eachCommand(func(cmd *command, path string) { texts[path] = s.help(cmd, path) })
	return texts
}

// Paths are those of all commands, in the order of help.
func Paths() (paths []string) {
	eachCommand(func(_ *command, path string) { paths = append(paths, path) })
	return paths
}

// Deviation and ClockTolerance are doctor's judgement of a clock.
var Deviation = deviation

// ClockTolerance, see Deviation.
const ClockTolerance = clockTolerance

// ProgramName is the default of Options.Name.
var ProgramName = programName
