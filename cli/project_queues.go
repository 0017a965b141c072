package cli

import (
	"context"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/cli/internal/samfile"
)

const (
	queuesFile  = "queues.go"
	tasksFolder = "tasks" // has the package of a project's tasks
)

func queuesAddCommand() *command {
	return &command{
		name:  "add",
		usage: "NAME",
		short: "Give the project in this folder one more queue",
		min:   1, max: 1,
		local: true,
		long: "Writes the queue into the project's Go code; its wakeups travel with those of \"default\". --own " +
			"adds an SQS queue to template.yaml, with all that the first one has; --fifo a FIFO queue. The " +
			"difference is shown first.",
		examples: []string{"queues add reports", "queues add reports --own", "queues add payments --fifo --dry-run"},
		act: func(flags *flag.FlagSet) action {
			own := flags.Bool("own", false, "with a separate SQS queue")
			fifo := flags.Bool("fifo", false, "with a separate FIFO queue")
			limit := flags.Int("concurrency", 0, "NUMBER of runs of a concurrency key at once; unbounded unless given")
			dryRun, yes := editFlags(flags)
			return func(ctx context.Context, s *session, args []string) error {
				q := runlane.Queue{Name: runlane.QueueName(args[0]), Concurrency: *limit}
				if err := q.Validate(); err != nil {
					return err
				}
				e, err := s.newProjectEdit()
				if err != nil {
					return err
				}
				variable, err := e.addQueueToCode(q)
				if err != nil {
					return err
				}
				if *own || *fifo {
					if err := e.addQueueToTemplate(args[0], *fifo); err != nil {
						return err
					}
				}
				if err := e.apply(ctx, s, *dryRun, *yes); err != nil || *dryRun {
					return err
				}
				if variable == "" {
					s.note("next: name it in a task, where it is not yet, and deploy")
				} else {
					s.note("next: name it in a task, Queue: %s, and deploy", variable)
				}
				if *fifo {
					s.note("a file orders it as SQS does with sqlite:PATH?ordered=%s", args[0])
				}
				if *own || *fifo {
					s.note("programs outside get their policies (TriggerPolicy, OperatorPolicy, ReadPolicy) " +
						"again after that")
				}
				return nil
			}
		},
	}
}

func editFlags(flags *flag.FlagSet) (dryRun, yes *bool) {
	return flags.Bool("dry-run", false, "only show the difference"), flags.Bool("yes", false, "do not ask")
}

// ownQueue is the syntax that the template and RUNLANE_QUEUES allow. SQS names have 80 characters, including the
// stack's name.
var ownQueue = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,39}$`)

// reservedNames have a meaning in the template.
var reservedNames = map[string]bool{"default": true, "Work": true, "FifoWork": true}

func (e *projectEdit) addQueueToTemplate(name string, fifo bool) error {
	if !ownQueue.MatchString(name) || reservedNames[name] || reservedNames[samfile.ID(name)] {
		return usagef(
			"choose another name, of at most 40 letters, digits and \"._-\"; ",
			"%s cannot have a separate SQS queue", quoted(name),
		)
	}
	template, err := e.template()
	if err != nil {
		return err
	}
	values, err := e.read(samconfigFile)
	if err != nil {
		return err
	}
	if parameter := carrierOf(values, name); parameter != "" {
		return usagef(
			"choose another name, or let the parameter name another queue; ",
			"%s of %s names an SQS queue for %s already", parameter, samconfigFile, quoted(name),
		)
	}
	after, err := samfile.AddQueue(template, samfile.Queue{Name: name, FIFO: fifo})
	if err != nil {
		return templateFault(err)
	}
	e.write(templateFile, after)
	return nil
}

func carrierOf(values, queue string) string {
	found := regexp.MustCompile(`\b(StandardQueue|FifoQueue)=[\\"']*` + regexp.QuoteMeta(queue) + `[\\"'\s]`).
		FindStringSubmatch(values + "\n")
	if found == nil {
		return ""
	}
	return found[1]
}

// addQueueToCode declares the queue unless the project's code does so already. It returns the queue's variable, or ""
// if the code has none.
func (e *projectEdit) addQueueToCode(q runlane.Queue) (variable string, err error) {
	declared, names, folder, pkg, err := e.queuesInCode()
	if err != nil {
		return "", err
	}
	if there, ok := declared[string(q.Name)]; ok {
		if q.Concurrency > 0 && there.limit != strconv.Itoa(q.Concurrency) {
			return "", usagef(
				"change it where it is declared; ", "queue %s is there with another limit", quoted(string(q.Name)),
			)
		}
		return there.variable, nil
	}
	variable = samfile.ID(string(q.Name))
	if names[variable] || !token.IsIdentifier(variable) || !token.IsExported(variable) {
		variable = "Queue" + variable
	}
	if names[variable] {
		return "", usagef(
			"declare it by hand: runlane.Queue{Name: "+strconv.Quote(string(q.Name))+"}; ",
			"%s is declared already", variable,
		)
	}
	path := filepath.Join(folder, queuesFile)
	text, err := e.read(path)
	if err != nil {
		return "", err
	}
	if text == "" {
		text = "package " + pkg + "\n\nimport \"" + modulePath + "\"\n"
	}
	limit := ""
	if q.Concurrency > 0 {
		limit = fmt.Sprintf(", Concurrency: %d", q.Concurrency)
	}
	e.write(path, strings.TrimRight(text, "\n")+fmt.Sprintf(
		"\n\n// %s is a queue: a task names it with Queue: %[1]s.\nvar %[1]s = runlane.Queue{Name: %q%s}\n",
		variable, q.Name, limit,
	))
	return variable, nil
}

// codeQueue is a queue declared in code: its limit as written, and its variable or "".
type codeQueue struct{ limit, variable string }

// queuesInCode reads the project's Go files: the declared queues, and of the folder where another one is declared its
// package-level names and package. That is tasksFolder, or the project's own in a project without it.
func (e *projectEdit) queuesInCode() (
	declared map[string]codeQueue, names map[string]bool, folder, pkg string, err error,
) {
	own, err := filepath.Glob(filepath.Join(e.folder, "*.go"))
	if err != nil {
		return nil, nil, "", "", err
	}
	tasks, err := filepath.Glob(filepath.Join(e.folder, tasksFolder, "*.go"))
	if err != nil {
		return nil, nil, "", "", err
	}
	if len(tasks) > 0 {
		folder = tasksFolder
	}
	declared, names = map[string]codeQueue{}, map[string]bool{}
	for _, path := range append(own, tasks...) {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		path, err := filepath.Rel(e.folder, path)
		if err != nil {
			return nil, nil, "", "", err
		}
		text, err := e.read(path)
		if err != nil {
			return nil, nil, "", "", err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, text, parser.SkipObjectResolution)
		if err != nil {
			return nil, nil, "", "", usagef("correct it first; ", "%s is not valid Go: %v", path, err)
		}
		if filepath.Join(folder, filepath.Base(path)) == path {
			pkg = file.Name.Name
			namesOf(file, names)
		}
		ast.Inspect(file, func(node ast.Node) bool {
			switch node := node.(type) {
			case *ast.CompositeLit:
				name, limit := declaredQueue(node)
				declared[name] = codeQueue{limit, declared[name].variable}
			case *ast.ValueSpec: // visited before its values
				for i, value := range node.Values {
					if literal, ok := value.(*ast.CompositeLit); ok && len(node.Names) == len(node.Values) {
						name, limit := declaredQueue(literal)
						declared[name] = codeQueue{limit, node.Names[i].Name}
					}
				}
			}
			return true
		})
	}
	if pkg == "" {
		return nil, nil, "", "", usagef(
			"go to your project's folder, or make one with \"runlane init NAME\"", "there is no Go program in %s", e.folder,
		)
	}
	return declared, names, folder, pkg, nil
}

func namesOf(file *ast.File, names map[string]bool) {
	for _, declaration := range file.Decls {
		switch d := declaration.(type) {
		case *ast.FuncDecl:
			names[d.Name.Name] = true
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.ValueSpec:
					for _, name := range s.Names {
						names[name.Name] = true
					}
				case *ast.TypeSpec:
					names[s.Name.Name] = true
				}
			}
		}
	}
}

// declaredQueue returns name and limit of runlane.Queue{Name: "…", Concurrency: …}, or "" for any other literal.
func declaredQueue(literal *ast.CompositeLit) (name, limit string) {
	if selector, ok := literal.Type.(*ast.SelectorExpr); !ok || selector.Sel.Name != "Queue" {
		return "", ""
	}
	for _, element := range literal.Elts {
		pair, ok := element.(*ast.KeyValueExpr)
		if !ok {
			continue
		}
		key, isKey := pair.Key.(*ast.Ident)
		value, isLiteral := pair.Value.(*ast.BasicLit)
		switch {
		case !isKey || !isLiteral:
		case key.Name == "Name":
			name, _ = strconv.Unquote(value.Value)
		case key.Name == "Concurrency":
			limit = value.Value
		}
	}
	return name, limit
}
