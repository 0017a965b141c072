package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// omitted are the parameters that differ from an account's, because local AWS lacks something.
var omitted = map[string]string{
	"Alarms":             "false",     // nothing evaluates alarms
	"Dashboard":          "false",     // nothing shows dashboards
	"Deployment":         "AllAtOnce", // there is no CodeDeploy
	"DeletionProtection": "false",     // the stack exists only for a short time
}

// deployOptions are for deployStack.
type deployOptions struct {
	// name of the stack. Required.
	name string
	// parameters of the template, besides omitted.
	parameters map[string]string
	// log gets what the tools print. Required.
	log io.Writer
	// root is a checkout of this project, whose tools deploy. "" means the working directory.
	root string
	// folder is the project to deploy, with its template.yaml. "" means root.
	folder string
}

// stack is a deployed template.
type stack struct {
	outputs map[string]string

	options  deployOptions
	endpoint string
	packaged []byte // the template, with the functions in S3
}

// deployStack builds the functions for this machine and deploys the template to AWS_ENDPOINT_URL, which has to be on this
// machine. Deploying a stack again updates it, or says that nothing changed. The error says which tool failed; the log has
// its output.
//
// An account translates the template. Local AWS does so too, but first compares two versions of a stack, and that never
// ends: in the template as written an alarm names its function and the function names its alarm, for deployments. So
// the same translator translates it here, and local AWS gets what AWS would compare, in a form that it can process
// (scripts/validate/local.py).
func deployStack(ctx context.Context, options deployOptions) (*stack, error) {
	s, err := buildStack(ctx, options)
	if err != nil {
		return nil, err
	}
	return s, s.update(ctx, options.parameters)
}

// buildStack builds the functions for this machine and brings them to AWS_ENDPOINT_URL, as deployStack does, and deploys
// nothing: stack.update does that. Until then the stack has no outputs. Two projects that are built for one name are
// two versions of one stack.
func buildStack(ctx context.Context, options deployOptions) (*stack, error) {
	s := &stack{options: options, endpoint: os.Getenv("AWS_ENDPOINT_URL")}
	if err := onThisMachine(s.endpoint); err != nil {
		return nil, err
	}
	if err := s.makeBucket(ctx); err != nil {
		return nil, err
	}
	build, err := os.MkdirTemp("", "runlane-deploy")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(build)
	if err := s.sam(ctx, options.log, "build", "--template", "template.yaml", "--build-dir", build); err != nil {
		return nil, err
	}
	packaged := filepath.Join(build, "packaged.yaml")
	arguments := append([]string{"package", "--template", filepath.Join(build, "template.yaml")}, s.place()...)
	arguments = append(arguments, "--no-progressbar", "--output-template-file", packaged)
	if err := s.sam(ctx, options.log, arguments...); err != nil {
		return nil, err
	}
	if s.packaged, err = os.ReadFile(packaged); err != nil {
		return nil, err
	}
	return s, nil
}

// update deploys the stack with these parameters and the functions that were built for it.
func (s *stack) update(ctx context.Context, given map[string]string) error {
	folder, err := os.MkdirTemp("", "runlane-update")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	packaged, translated := filepath.Join(folder, "packaged.yaml"), filepath.Join(folder, "translated.json")
	parameters := pairs(given)
	if err := os.WriteFile(packaged, s.packaged, 0o600); err != nil {
		return err
	}
	if err := tool(
		ctx,
		s.options,
		s.options.log,
		"--translate",
		append([]string{packaged, translated}, parameters...)...,
	); err != nil {
		return err
	}
	template, err := os.ReadFile(translated)
	if err != nil {
		return err
	}
	overrides, err := complete(template, parameters)
	if err != nil {
		return err
	}
	arguments := append([]string{"deploy", "--template", translated, "--stack-name", s.options.name}, s.place()...)
	arguments = append(
		arguments, "--capabilities", "CAPABILITY_IAM",
		"--no-confirm-changeset", "--no-fail-on-empty-changeset", "--no-progressbar", "--parameter-overrides",
	)
	if err := s.sam(ctx, s.options.log, append(arguments, overrides...)...); err != nil {
		return err
	}
	if s.outputs, err = readOutputs(ctx, s.options); err != nil {
		return err
	}
	return s.moveAliases(ctx)
}

// bucket has what is deployed to local AWS. SAM would make one too, and two deployments that
// begin at once would make it twice.
const bucket = "runlane-deployments"

// place is where the stack's objects are: `sam delete` takes them away, and another stack may have the same code.
func (s *stack) place() []string {
	return []string{"--s3-bucket", bucket, "--s3-prefix", s.options.name}
}

// makeBucket makes the bucket unless it is there.
func (s *stack) makeBucket(ctx context.Context) error {
	_, err := s.ask(ctx, "s3", http.MethodPut, bucket, "")
	return err
}

// moveAliases points each alias to the version that the template names, as CloudFormation would. If that version is the
// last deployment's, which the alias describes, the alias stays: it may have been moved by hand since.
func (s *stack) moveAliases(ctx context.Context) error {
	for _, output := range slices.Sorted(maps.Keys(s.outputs)) {
		where := strings.Fields(s.outputs[output])
		if !strings.HasPrefix(output, "Local") || len(where) != 3 {
			continue
		}
		path, version := "aliases/"+where[1], where[2]
		answer, err := s.call(ctx, http.MethodGet, where[0], path, "")
		if err != nil {
			return err
		}
		var alias struct{ Description string }
		if err := json.Unmarshal(answer, &alias); err != nil {
			return fmt.Errorf("alias of %s: %w", where[0], err)
		}
		deployed := "deployed version " + version
		if alias.Description == deployed {
			continue
		}
		if _, err := s.call(
			ctx,
			http.MethodPut,
			where[0],
			path,
			fmt.Sprintf(`{"FunctionVersion":%q,"Description":%q}`, version, deployed),
		); err != nil {
			return err
		}
	}
	return nil
}

// pairs lists omitted, overridden by the given parameters, as NAME=VALUE.
func pairs(given map[string]string) (list []string) {
	parameters := maps.Clone(omitted)
	maps.Copy(parameters, given)
	for _, name := range slices.Sorted(maps.Keys(parameters)) {
		list = append(list, name+"="+parameters[name])
	}
	return list
}

// complete adds the default of every parameter that is not given. A stack would keep its own value of such a parameter;
// but the template was translated with the default, which decided conditions and named the functions' versions.
func complete(translated []byte, given []string) ([]string, error) {
	var template struct {
		Parameters map[string]struct{ Default any }
	}
	decoder := json.NewDecoder(bytes.NewReader(translated))
	decoder.UseNumber() // 1000000, not 1e+06
	if err := decoder.Decode(&template); err != nil {
		return nil, fmt.Errorf("parameters of the translated template: %w", err)
	}
	for _, pair := range given {
		name, _, _ := strings.Cut(pair, "=")
		delete(template.Parameters, name)
	}
	all := slices.Clone(given)
	for _, name := range slices.Sorted(maps.Keys(template.Parameters)) {
		if value := template.Parameters[name].Default; value != nil {
			all = append(all, fmt.Sprintf("%s=%q", name, fmt.Sprint(value))) // quoted, or SAM takes no empty text
		}
	}
	return all, nil
}

// onThisMachine prevents a deployment to an account when the environment is wrong.
func onThisMachine(endpoint string) error {
	u, err := url.Parse(endpoint)
	if err != nil || u.Hostname() == "" {
		return errors.New("AWS_ENDPOINT_URL names no endpoint: run make local-up, then load .local/env")
	}
	if ip := net.ParseIP(u.Hostname()); u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("AWS_ENDPOINT_URL is %s, which is not on this machine: deploy there with sam deploy", u.Host)
	}
	return nil
}

func (s *stack) sam(ctx context.Context, out io.Writer, arguments ...string) error {
	return sam(ctx, s.options, out, arguments...)
}

// sam runs the pinned SAM command line.
func sam(ctx context.Context, options deployOptions, out io.Writer, arguments ...string) error {
	if err := tool(ctx, options, out, "--sam", arguments...); err != nil {
		return fmt.Errorf("sam %s: %w", arguments[0], err)
	}
	return nil
}

// tool runs one of the pinned tools of AWS, by the mode of scripts/validate.sh.
func tool(ctx context.Context, options deployOptions, out io.Writer, mode string, arguments ...string) error {
	script, err := filepath.Abs(filepath.Join(options.root, "scripts", "validate.sh"))
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, script, append([]string{mode}, arguments...)...)
	cmd.Dir = cmp.Or(options.folder, options.root)
	cmd.Env = append(os.Environ(), "LAMBDA_ARCH="+runtime.GOARCH, "SAM_CLI_POLL_DELAY=1")
	if region := os.Getenv("AWS_REGION"); region != "" { // the SAM command line knows the other name alone
		cmd.Env = append(cmd.Env, "AWS_DEFAULT_REGION="+region)
	}
	cmd.Stdout, cmd.Stderr = out, options.log
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("validate.sh %s: %w", mode, err)
	}
	return nil
}

// readOutputs reads the outputs of an existing stack, in an account or on local AWS: the standard variables and files
// of AWS decide. It needs only the options' name and log.
func readOutputs(ctx context.Context, options deployOptions) (map[string]string, error) {
	var out bytes.Buffer
	if err := sam(
		ctx, options, &out, "list", "stack-outputs", "--stack-name", options.name, "--output", "json",
	); err != nil {
		return nil, err
	}
	return parseOutputs(out.Bytes())
}

// parseOutputs reads what the SAM command line lists.
func parseOutputs(text []byte) (map[string]string, error) {
	var listed []struct{ OutputKey, OutputValue string }
	if err := json.Unmarshal(text, &listed); err != nil {
		return nil, fmt.Errorf("outputs of the stack: %w", err)
	}
	outputs := map[string]string{}
	for _, o := range listed {
		if o.OutputKey == "" {
			return nil, errors.New("outputs of the stack: one has no name")
		}
		if _, twice := outputs[o.OutputKey]; twice {
			return nil, fmt.Errorf("outputs of the stack: %s is there twice", o.OutputKey)
		}
		outputs[o.OutputKey] = o.OutputValue
	}
	return outputs, nil
}

// tick invokes the tick function and waits for it: local AWS keeps the schedule and never fires it.
func (s *stack) tick(ctx context.Context) error {
	_, err := s.lambda(ctx, http.MethodPost, "TickFunction", "invocations?Qualifier=live", "{}")
	return err
}

// lambda makes a request to a function that an output of the stack names, and returns the body of the answer. A failure
// of the function itself is an error too.
func (s *stack) lambda(ctx context.Context, method, output, path, body string) ([]byte, error) {
	return s.call(ctx, method, s.outputs[output], path, body)
}

// call makes a request to a function by its name.
func (s *stack) call(ctx context.Context, method, function, path, body string) ([]byte, error) {
	return s.request(ctx, method, "functions/"+url.PathEscape(function)+"/"+path, body)
}

// request makes a request to Lambda.
func (s *stack) request(ctx context.Context, method, path, body string) ([]byte, error) {
	return s.ask(ctx, "lambda", method, "2015-03-31/"+path, body)
}

// ask makes a request to a service of local AWS.
func (s *stack) ask(ctx context.Context, service, method, path, body string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, s.endpoint+"/"+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	// Local AWS takes account and region from the credential and checks no signature.
	request.Header.Set(
		"Authorization",
		fmt.Sprintf("AWS4-HMAC-SHA256 Credential=%s/20260101/%s/%s/aws4_request, SignedHeaders=host, Signature=0",
			os.Getenv("AWS_ACCESS_KEY_ID"), os.Getenv("AWS_REGION"), service),
	)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	if fault := response.Header.Get("X-Amz-Function-Error"); response.StatusCode >= http.StatusBadRequest ||
		fault != "" {
		return nil, fmt.Errorf("%s %s: %s %s: %s", method, path, response.Status, fault, answer)
	}
	return answer, nil
}

// delete removes the stack. The table stays, as it does in an account.
func (s *stack) delete(ctx context.Context) error {
	return s.sam(ctx, s.options.log, "delete", "--stack-name", s.options.name, "--no-prompts")
}
