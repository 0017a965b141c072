package runlane

import (
	"fmt"
	"strings"
)

// unreadable explains an item with a part that is neither a number nor a name of the field.
func (f *cronField) unreadable(item, part string) *Error {
	days := f == dayField || f == weekdayField
	_, number := cronNumber(part)
	_, lastWeekday := weekdayField.value(strings.TrimSuffix(item, "L"))
	switch {
	case item == "":
		return &Error{Message: "is empty", Hint: "put one comma between two values"}
	case number:
		return &Error{Message: "is out of range", Hint: f.takes()}
	case days && strings.HasSuffix(item, "W"):
		return &Error{
			Message: "asks for the nearest weekday",
			Hint:    `"W" does not exist: fire on MON-FRI, and judge the date in the handler`,
		}
	case f == dayField && lastWeekday:
		return &Error{
			Message: "asks for a last weekday",
			Hint:    `write "5L" in the day of week, or "L" for the last day of the month`,
		}
	case f == dayField && strings.Contains(item, "L"):
		return &Error{Message: `combines "L" with something else`, Hint: `"L" stands alone: write "L" or a day`}
	case f == weekdayField && strings.HasSuffix(item, "L"):
		return &Error{
			Message: "names no weekday",
			Hint:    `write "5L" for the last Friday of the month, "6" for every Saturday`,
		}
	case f == weekdayField && strings.Contains(item, "#"):
		return &Error{
			Message: "is not a weekday with its number",
			Hint:    `write one weekday and its number in the month, 1 to 5: "MON#2"`,
		}
	case strings.ContainsAny(item, "*?"):
		return &Error{
			Message: "mixes a wildcard with something else",
			Hint:    `write "*", "*/2" or values; "?" stands alone`,
		}
	default:
		return &Error{Message: "cannot be read", Hint: f.takes()}
	}
}

// takes lists the field's values.
func (f *cronField) takes() string {
	text := fmt.Sprintf("%s takes %d-%d", f.name, f.min, f.top)
	if len(f.names) > 0 {
		text += fmt.Sprintf(" or %s-%s", f.names[0], f.names[len(f.names)-1])
	}
	return text
}
