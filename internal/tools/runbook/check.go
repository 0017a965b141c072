package runbook

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Installation is what commands may name.
type Installation struct {
	Targets    []string // of make
	Parameters []string // of the template
}

// Placeholders are the words in capitals that the reader fills in, with the output of the stack each is, where it is
// one.
var Placeholders = map[string]string{
	"RUN":                        "",
	"DEAD":                       "",
	"QUEUE":                      "",
	"TASK":                       "",
	"STACK":                      "",
	"TAG":                        "",
	"VERSION":                    "",
	"DEPLOYMENT":                 "",
	"SECRET":                     "",
	"REVISION":                   "",
	"ROLE":                       "",
	"INSTANT":                    "",
	"UUID":                       "",
	"REGION":                     "",
	"RESTORED":                   "",
	"STREAM_ARN":                 "",
	"SECRET_ARN":                 "",
	"SECRET_NAME":                "",
	"OLD_KEY":                    "",
	"OLD_SECRET_ARN":             "",
	"QUEUE_URL":                  "",
	"DEAD_LETTERS_URL":           "",
	"NEW_KEY":                    "",
	"FIFO_WORK_DEAD_LETTERS_ARN": "",
	"WORK_DEAD_LETTERS_ARN":      "",
	"LOG_GROUP":                  "",
	"PARAMETERS":                 "",
	"PAYLOAD":                    "",
	"BRIDGE":                     "BridgeFunction",
	"RELAY":                      "RelayFunction",
	"TICK":                       "TickFunction",
	"TABLE":                      "TableName",
	"WORK_DEAD_LETTERS_URL":      "WorkDeadLettersUrl",
	"RELAY_FAILURES_URL":         "RelayFailuresUrl",
	"TICK_DEAD_LETTERS_URL":      "TickDeadLettersUrl",
}

// fixed are words in capitals that AWS wants as they are.
var fixed = []string{
	"ALARM", "ERROR", "NEW_IMAGE", "CAPABILITY_IAM", "ARN", "UUID",
	"RUNLANE_LIMITS", "RUNLANE_QUEUES", "RUNLANE_REVISION", // variables
}

// Check says what is wrong with a command other than runlane's, whose own parser is asked: a program, an operation or a
// flag that is not on the list, a flag without its value, a target or a parameter that does not exist, a placeholder
// without an explanation.
func (i *Installation) Check(c *Command) error {
	for n := range c.Inner {
		if err := i.Check(&c.Inner[n]); err != nil {
			return err
		}
	}
	for _, word := range c.Words {
		for _, name := range placeholder.FindAllString(word, -1) {
			if _, known := Placeholders[name]; !known && !slices.Contains(fixed, name) {
				return fmt.Errorf("line %d: what is %s?", c.Line, name)
			}
		}
	}
	program, rest := c.Words[0], c.Words[1:]
	var err error
	switch program {
	case "runlane":
	case "export":
		err = checkExport(rest, len(c.Inner))
	case "git":
		if len(rest) != 2 || rest[0] != "checkout" {
			err = fmt.Errorf("git %s is not on the list", strings.Join(rest, " "))
		}
	case "read": // a secret, which neither the screen nor the shell's history gets to see
		if len(rest) != 2 || rest[0] != "-rs" {
			err = fmt.Errorf("read %s is not on the list", strings.Join(rest, " "))
		}
	case "make":
		if len(rest) != 1 || !slices.Contains(i.Targets, rest[0]) {
			err = fmt.Errorf("there is no target %s", strings.Join(rest, " "))
		}
	case "aws", "sam":
		err = i.checkTool(program, rest)
	default:
		err = fmt.Errorf("%s is not on the list", program)
	}
	if err != nil {
		return fmt.Errorf("line %d: %w", c.Line, err)
	}
	return nil
}

// checkExport wants one variable of the project's, or the output of a command.
func checkExport(words []string, inner int) error {
	if len(words) == 1 && (inner == 1 || strings.HasPrefix(words[0], "RUNLANE_") && strings.Contains(words[0], "=")) {
		return nil
	}
	return fmt.Errorf("export %s sets no variable of the project", strings.Join(words, " "))
}

// checkTool takes the operation, then flags: those that the list names, each with its values.
func (i *Installation) checkTool(program string, words []string) error {
	depth := 1
	if program == "aws" {
		depth = 2
		if len(words) > 1 && words[1] == "wait" {
			depth = 3
		}
	}
	if len(words) < depth {
		return fmt.Errorf("%s %s is no command", program, strings.Join(words, " "))
	}
	operation := program + " " + strings.Join(words[:depth], " ")
	allowed, known := operations[operation]
	if !known {
		return fmt.Errorf("%s is not on the list", operation)
	}
	given := map[string][]string{}
	last := ""
	for _, word := range words[depth:] {
		switch {
		case strings.HasPrefix(word, "--"):
			last = word
			if _, twice := given[last]; twice {
				return fmt.Errorf("%s has %s twice", operation, last)
			}
			given[last] = []string{}
		case last == "" && operation == "aws logs tail" && len(given) == 0: // its only argument
			given["--log-group"] = append(given["--log-group"], word)
		case last == "":
			return fmt.Errorf("%s takes no argument %s", operation, word)
		default:
			given[last] = append(given[last], word)
		}
	}
	return i.checkFlags(operation, allowed, given)
}

func (i *Installation) checkFlags(operation string, allowed []string, given map[string][]string) error {
	if strings.HasPrefix(operation, "aws ") {
		allowed = append(slices.Clone(allowed), "--output", "--query", "--cli-read-timeout")
	}
	for _, rule := range allowed {
		name, required := strings.CutSuffix(rule, "!")
		if _, there := given[name]; required && !there {
			return fmt.Errorf("%s needs %s", operation, name)
		}
	}
	for flag, values := range given {
		switch alone := slices.Contains(allowed, flag+"?"); {
		case alone && len(values) > 0:
			return fmt.Errorf("%s: %s takes no value", operation, flag)
		case alone:
		case !slices.Contains(allowed, flag) && !slices.Contains(allowed, flag+"!"):
			return fmt.Errorf("%s has no flag %s", operation, flag)
		case len(values) == 0:
			return fmt.Errorf("%s: %s needs a value", operation, flag)
		}
	}
	if name := given["--stack-name"]; len(name) > 0 && !slices.Equal(name, []string{"STACK"}) {
		return fmt.Errorf("%s is about %s, and not about STACK", operation, strings.Join(name, " "))
	}
	return i.checkOverrides(operation, given["--parameter-overrides"])
}

// checkOverrides wants parameters of the template, a secret only from a variable, and Revision with it; and something
// that makes another version with a deployment that goes without a canary, because a canary that was rolled back has
// left the version of these parameters.
func (i *Installation) checkOverrides(operation string, pairs []string) error {
	for _, pair := range pairs {
		if pair == "PARAMETERS" { // those of the reader's samconfig.toml
			continue
		}
		if name, _, ok := strings.Cut(pair, "="); !ok || !slices.Contains(i.Parameters, name) {
			return fmt.Errorf("%s: the template has no parameter %s", operation, pair)
		}
	}
	overrides := strings.Join(pairs, " ")
	if strings.Contains(overrides, "WebhookSecret=") && !strings.Contains(overrides, "Revision=") {
		return fmt.Errorf("%s: a secret without Revision reaches no function", operation)
	}
	if strings.Contains(overrides, "Deployment=AllAtOnce") && !strings.Contains(overrides, "Revision=") &&
		!strings.Contains(overrides, "ExistingTable=") {
		return fmt.Errorf("%s: AWS refuses the version of a deployment that was rolled back; give Revision", operation)
	}
	if strings.Contains(overrides, "WebhookSecret=") && !strings.Contains(overrides, "WebhookSecret=$") {
		return fmt.Errorf("%s: a secret that is typed stays in the shell's history", operation)
	}
	return nil
}

// CheckBuilds wants a `sam build` before each deployment, in the same section: else it ships what an older build left,
// or sources. A build is about what was checked out when it was made.
func CheckBuilds(blocks []Block) error {
	built := map[string]bool{} // by section
	for _, block := range blocks {
		for _, c := range block.Steps {
			switch operation := strings.Join(c.Words[:min(2, len(c.Words))], " "); operation {
			case "git checkout":
				built[block.Section] = false
			case "sam build":
				built[block.Section] = true
			case "sam deploy":
				if !built[block.Section] {
					return fmt.Errorf("line %d: no sam build before it in %q", c.Line, block.Section)
				}
			}
		}
	}
	return nil
}

// operations are the commands of the tools that the document may name, with their flags: "!" is one that has to be
// given, "?" one that takes no value. Those of SQS and DynamoDB are held equal to the SDK by a test, the others were
// compared with the tool's help.
var operations = map[string][]string{
	"aws cloudformation describe-stacks":  {"--stack-name!"},
	"aws cloudformation get-stack-policy": {"--stack-name!"},
	"aws cloudformation set-stack-policy": {"--stack-name!", "--stack-policy-body!"},
	"aws cloudwatch describe-alarms":      {"--state-value"},
	"aws deploy list-deployments":         {"--include-only-statuses"},
	"aws deploy stop-deployment":          {"--deployment-id!", "--auto-rollback-enabled?"},
	"aws dynamodb describe-table":         {"--table-name!"},
	"aws dynamodb list-tables":            {},
	"aws dynamodb restore-table-to-point-in-time": {
		"--source-table-name",
		"--target-table-name!",
		"--restore-date-time",
	},
	"aws dynamodb update-continuous-backups": {"--table-name!", "--point-in-time-recovery-specification!"},
	"aws dynamodb update-table": {
		"--table-name!",
		"--stream-specification",
		"--deletion-protection-enabled?",
		"--no-deletion-protection-enabled?",
	},
	"aws dynamodb update-time-to-live":       {"--table-name!", "--time-to-live-specification!"},
	"aws dynamodb wait table-exists":         {"--table-name!"},
	"aws iam delete-role-policy":             {"--role-name!", "--policy-name!"},
	"aws iam put-role-policy":                {"--role-name!", "--policy-name!", "--policy-document!"},
	"aws lambda delete-function-concurrency": {"--function-name!"},
	"aws lambda get-alias":                   {"--function-name!", "--name!"},
	"aws lambda get-function-concurrency":    {"--function-name!"},
	"aws lambda get-function-configuration":  {"--function-name!"},
	"aws lambda invoke":                      {"--function-name!"},
	"aws lambda list-event-source-mappings":  {"--function-name"},
	"aws lambda list-versions-by-function":   {"--function-name!"},
	"aws secretsmanager put-secret-value":    {"--secret-id!", "--secret-string!"},
	"aws ssm put-parameter":                  {"--name!", "--value!", "--type", "--overwrite?"},
	"aws lambda put-function-concurrency":    {"--function-name!", "--reserved-concurrent-executions!"},
	"aws lambda update-alias":                {"--function-name!", "--name!", "--function-version"},
	"aws lambda update-event-source-mapping": {"--uuid!", "--enabled?", "--no-enabled?"},
	"aws logs tail":                          {"--log-group!", "--since", "--filter-pattern"},
	"aws scheduler get-schedule":             {"--name!"},
	"aws sqs create-queue":                   {"--queue-name!", "--attributes"},
	"aws sqs get-queue-attributes":           {"--queue-url!", "--attribute-names"},
	"aws sqs list-message-move-tasks":        {"--source-arn!"},
	"aws sqs purge-queue":                    {"--queue-url!"},
	"aws sqs receive-message":                {"--queue-url!", "--visibility-timeout", "--max-number-of-messages"},
	"aws sqs start-message-move-task":        {"--source-arn!", "--destination-arn"},
	"sam build":                              {},
	"sam deploy": {
		"--guided?", "--parameter-overrides", "--stack-name!", "--region", "--resolve-s3?", "--capabilities",
	},
}

// Operations lists the commands of the tools that Check knows, with their flags.
func Operations() map[string][]string { return maps.Clone(operations) }
