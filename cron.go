package runlane

import (
	"fmt"
	"strconv"
	"strings"
)

// cronRule is a parsed expression: bit sets with one bit for each value. It has no pointers, so When stays comparable.
type cronRule struct {
	minutes, hours, days, months, weekdays uint64

	lastDay      bool   // L in the day of month
	lastWeekdays uint64 // 5L: bit 5
	nthWeekdays  uint64 // MON#2: bit nthBit(1, 2)

	anyHour, anyDay, anyWeekday bool // unrestricted: the field begins with * or is ?
	valid                       bool // parsed, and able to fire
}

// nthBit returns the bit of MON#2 and the like: each number has seven bits.
func nthBit(weekday, n int) uint64 { return 1 << (7*(n-1) + weekday) }

// maxCronBytes is more than any sensible list needs.
const maxCronBytes = 1024

// cronField describes the values of one field.
type cronField struct {
	name     string
	min, max int      // of * and of steps
	top      int      // the highest allowed value
	names    []string // of min and the following values
}

var (
	minuteField = &cronField{name: "minute", max: 59, top: 59}
	hourField   = &cronField{name: "hour", max: 23, top: 23}
	dayField    = &cronField{name: "day of month", min: 1, max: 31, top: 31}
	monthField  = &cronField{
		name:  "month",
		min:   1,
		max:   12,
		top:   12,
		names: strings.Fields("JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC"),
	}
	weekdayField = &cronField{name: "day of week", max: 6, top: 7, names: strings.Fields("SUN MON TUE WED THU FRI SAT")}
)

var cronWords = map[string]string{
	"@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
	"@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
}

const (
	hintFiveFields = "write five fields: minute, hour, day-of-month, month, day-of-week"
	hintWords      = "the words are @yearly, @annually, @monthly, @weekly, @daily, @midnight and @hourly"
)

// parseCron reads an expression by the rules of [Cron].
func parseCron(expression string) (cronRule, error) {
	rule, err := readCron(expression)
	if err == nil && !rule.canFire() {
		err = &Error{Message: "it can never fire", Hint: "no month that it names has such a day"}
	}
	if err != nil {
		err.Code = ErrConfigurationInvalid
		err.Message = fmt.Sprintf("cron expression %q: %s", clip(expression, 64), err.Message)
		return cronRule{}, err
	}
	rule.valid = true
	return rule, nil
}

func readCron(expression string) (cronRule, *Error) {
	if len(expression) > maxCronBytes {
		return cronRule{}, &Error{
			Message: fmt.Sprintf("it has %d bytes", len(expression)),
			Hint:    fmt.Sprintf("use at most %d", maxCronBytes),
		}
	}
	fields, err := cronFieldsOf(expression)
	if err != nil {
		return cronRule{}, err
	}
	var rule cronRule
	for i, field := range []*cronField{minuteField, hourField, dayField, monthField, weekdayField} {
		if err := rule.readField(field, fields[i]); err != nil {
			return cronRule{}, err
		}
	}
	rule.anyHour = unrestricted(fields[1])
	rule.anyDay, rule.anyWeekday = unrestricted(fields[2]), unrestricted(fields[4])
	return rule, nil
}

// unrestricted goes by the start of a field, as in Vixie cron: */2 counts.
func unrestricted(field string) bool { return field[0] == '*' || field == "?" }

// cronFieldsOf splits an expression into its five fields, in upper case.
func cronFieldsOf(expression string) ([]string, *Error) {
	text := spellCron(expression)
	if strings.HasPrefix(text, "@") {
		word, _, _ := strings.Cut(text, " ")
		switch expansion, known := cronWords[text]; {
		case known:
			text = expansion
		case word == "@every":
			return nil, &Error{Message: "@every is not a cron expression", Hint: "use runlane.Every for intervals"}
		case word == "@reboot":
			return nil, &Error{
				Message: "@reboot is not a time",
				Hint:    "a schedule outlives its programs: trigger the run when the program starts",
			}
		default:
			return nil, &Error{Message: fmt.Sprintf("%q is unknown", clip(text, 64)), Hint: hintWords}
		}
	}
	if zone, found := zonePrefix(expression); found {
		return nil, &Error{
			Message: "it begins with a zone",
			Hint:    fmt.Sprintf("name the zone with In(%q)", clip(zone, 64)),
		}
	}
	fields := strings.Fields(text)
	switch {
	case len(fields) == 0:
		return nil, &Error{Message: "it is empty", Hint: hintFiveFields}
	case len(fields) > 5:
		return nil, &Error{
			Message: fmt.Sprintf("it has %d fields", len(fields)),
			Hint:    hintFiveFields + "; there is none for seconds or years (runlane.Every takes seconds)",
		}
	case len(fields) < 5:
		return nil, &Error{Message: fmt.Sprintf("it has %d of 5 fields", len(fields)), Hint: hintFiveFields}
	}
	return fields, nil
}

// zonePrefix finds the zone prefix of other crons.
func zonePrefix(expression string) (zone string, found bool) {
	for first := range strings.FieldsSeq(expression) {
		name, zone, found := strings.Cut(first, "=")
		name = upperASCII(name)
		return zone, found && (name == "TZ" || name == "CRON_TZ")
	}
	return "", false
}

// spellCron normalizes spaces and case.
func spellCron(expression string) string {
	text := strings.Join(strings.Fields(expression), " ")
	if strings.HasPrefix(text, "@") {
		return strings.ToLower(text)
	}
	return upperASCII(text)
}

// upperASCII changes only ASCII; [strings.ToUpper] also maps some foreign letters to S and K.
func upperASCII(text string) string {
	return strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' {
			return r - 'a' + 'A'
		}
		return r
	}, text)
}

func (r *cronRule) readField(f *cronField, text string) *Error {
	if text == "?" {
		text = "*"
	}
	var set uint64
	for item := range strings.SplitSeq(text, ",") {
		if r.readSpecial(f, item) {
			continue
		}
		values, err := f.read(item)
		if err != nil {
			err.Message = fmt.Sprintf("%s %q %s", f.name, clip(item, 32), err.Message)
			return err
		}
		set |= values
	}
	switch f {
	case minuteField:
		r.minutes = set
	case hourField:
		r.hours = set
	case dayField:
		r.days = set
	case monthField:
		r.months = set
	case weekdayField:
		r.weekdays = set
	}
	return nil
}

// readSpecial reads the extras of the day fields: L, 5L and MON#2.
func (r *cronRule) readSpecial(f *cronField, item string) bool {
	switch f {
	case dayField:
		if item != "L" {
			return false
		}
		r.lastDay = true
		return true
	case weekdayField:
		if day, found := strings.CutSuffix(item, "L"); found {
			weekday, ok := f.value(day)
			if ok {
				r.lastWeekdays |= 1 << (weekday % 7)
			}
			return ok
		}
		if day, number, found := strings.Cut(item, "#"); found {
			weekday, ok := f.value(day)
			ok = ok && len(number) == 1 && '1' <= number[0] && number[0] <= '5'
			if ok {
				r.nthWeekdays |= nthBit(weekday%7, int(number[0]-'0'))
			}
			return ok
		}
	}
	return false
}

// read takes *, a value or a range; * and a range may have a step. Its errors lack the subject, which readField adds.
func (f *cronField) read(item string) (uint64, *Error) {
	base, stepText, stepped := strings.Cut(item, "/")
	step, err := f.step(stepText, stepped)
	if err != nil {
		return 0, err
	}
	if base == "*" {
		return f.spread(f.min, f.max, step)
	}
	from, to, ranged := strings.Cut(base, "-")
	low, ok := f.value(from)
	if !ok {
		return 0, f.unreadable(item, from)
	}
	if !ranged {
		if stepped {
			return 0, f.lonelyStep(low, step)
		}
		return f.spread(low, low, 1)
	}
	high, ok := f.value(to)
	switch {
	case !ok:
		return 0, f.unreadable(item, to)
	case f == weekdayField && to == "SUN" && low > 0:
		high = 7 // FRI-SUN
	}
	if low > high {
		return 0, &Error{Message: "runs backward", Hint: fmt.Sprintf("write %q", f.forward(low, high, step))}
	}
	if stepped && low == high {
		return 0, &Error{Message: "steps beyond its range", Hint: fmt.Sprintf("write %q", strconv.Itoa(low))}
	}
	return f.spread(low, high, step)
}

func (f *cronField) step(text string, stepped bool) (int, *Error) {
	if !stepped {
		return 1, nil
	}
	step, ok := cronNumber(text)
	if !ok || step == 0 {
		return 0, &Error{
			Message: "has a step that is not a number above 0",
			Hint:    fmt.Sprintf("write a step from 1 to %d", f.max-f.min),
		}
	}
	return step, nil
}

// spread returns low, low+step and so on up to high. A step that reaches no second value is an error: "*/90" in minutes
// does not mean every 90 minutes.
func (f *cronField) spread(low, high, step int) (uint64, *Error) {
	if step > 1 && step > high-low {
		return 0, &Error{
			Message: "steps beyond its range",
			Hint:    fmt.Sprintf("the step is at most %d; runlane.Every takes any interval", high-low),
		}
	}
	var set uint64
	for value := low; value <= high; value += step {
		if f == weekdayField {
			set |= 1 << (value % 7)
			continue
		}
		set |= 1 << value
	}
	return set, nil
}

// value reads a number or a name.
func (f *cronField) value(text string) (int, bool) {
	for i, name := range f.names {
		if text == name {
			return f.min + i, true
		}
	}
	number, ok := cronNumber(text)
	return number, ok && f.min <= number && number <= f.top
}

// cronNumber reads up to three digits without a sign.
func cronNumber(text string) (int, bool) {
	if text == "" || len(text) > 3 {
		return 0, false
	}
	number := 0
	for _, digit := range []byte(text) {
		if digit < '0' || digit > '9' {
			return 0, false
		}
		number = number*10 + int(digit-'0')
	}
	return number, true
}

// lonelyStep refuses "5/15": some crons read it as 5 alone, others as 5-59/15.
func (f *cronField) lonelyStep(value, step int) *Error {
	meant := strconv.Itoa(value)
	if value+step <= f.max {
		meant = fmt.Sprintf("%d-%d/%d", value, f.max, step)
	}
	return &Error{Message: "steps from a single value", Hint: fmt.Sprintf("write %q", meant)}
}

// forward writes a range that wraps around as a list.
func (f *cronField) forward(low, high, step int) string {
	size := f.max - f.min + 1
	switch {
	case step > 1:
		var values []string
		for value := low; value <= high+size; value += step {
			values = append(values, strconv.Itoa(f.min+(value-f.min)%size))
		}
		return strings.Join(values, ",")
	case f == weekdayField && low == 7:
		return span(0, high)
	case f == weekdayField && high == 0:
		return span(low, 7)
	default:
		return span(low, f.max) + "," + span(f.min, high)
	}
}

func span(low, high int) string {
	if low == high {
		return strconv.Itoa(low)
	}
	return fmt.Sprintf("%d-%d", low, high)
}
