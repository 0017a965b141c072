package localstack_test

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// lambdaAPI is as much of the Lambda API as the test needs, by plain HTTP: the module has no Lambda client, and LocalStack
// checks no signature.
type lambdaAPI struct{ endpoint string }

func (l lambdaAPI) call(t *testing.T, method, path string, body any) (status int, header http.Header, answer []byte) {
	t.Helper()
	var payload []byte
	if body != nil {
		var err error
		if payload, err = json.Marshal(body); err != nil {
			t.Fatal(err)
		}
	}
	request, err := http.NewRequestWithContext(t.Context(), method, l.endpoint+"/2015-03-31/functions"+path, bytes.NewReader(payload))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/lambda/aws4_request, SignedHeaders=host, Signature=0")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	answer, err = io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, response.Header, answer
}

// functionZip builds testdata/function for this machine, as the executor runs it here.
func functionZip(t *testing.T) []byte {
	t.Helper()
	bootstrap := filepath.Join(t.TempDir(), "bootstrap")
	build := exec.CommandContext(t.Context(), "go", "build", "-tags", "lambda.norpc", "-o", bootstrap, "./testdata/function")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	program, err := os.ReadFile(bootstrap)
	if err != nil {
		t.Fatal(err)
	}
	var buffer bytes.Buffer
	archive := zip.NewWriter(&buffer)
	file, err := archive.Create("bootstrap")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.Write(program); err != nil {
		t.Fatal(err)
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes()
}

// deploy creates the function and waits until it can be invoked.
func (l lambdaAPI) deploy(t *testing.T, name string) {
	t.Helper()
	status, _, answer := l.call(t, http.MethodPost, "", map[string]any{
		"FunctionName": name, "Runtime": "provided.al2023", "Handler": "bootstrap", "Timeout": 2,
		"Role":          "arn:aws:iam::000000000000:role/any",
		"Architectures": []string{map[string]string{"amd64": "x86_64", "arm64": "arm64"}[runtime.GOARCH]},
		"Code":          map[string]any{"ZipFile": functionZip(t)},
	})
	if status != http.StatusCreated {
		t.Fatalf("create: status %d: %s", status, answer)
	}
	deadline := time.Now().Add(time.Minute)
	for {
		status, _, answer = l.call(t, http.MethodGet, "/"+name, nil)
		if status != http.StatusOK {
			t.Fatalf("get: status %d: %s", status, answer)
		}
		var function struct {
			Configuration struct{ State, StateReason string }
		}
		if err := json.Unmarshal(answer, &function); err != nil {
			t.Fatal(err)
		}
		switch state := function.Configuration.State; {
		case state == "Active":
			return
		case state != "Pending", time.Now().After(deadline):
			t.Fatalf("the function is %s: %s", state, function.Configuration.StateReason)
		}
		<-time.After(100 * time.Millisecond)
	}
}

type answer struct {
	Text         string
	Endpoint     string
	Process      int
	ErrorMessage string
	ErrorType    string
}

func (l lambdaAPI) invoke(t *testing.T, name, do, text string) (got answer, failed bool) {
	t.Helper()
	status, header, body := l.call(t, http.MethodPost, "/"+name+"/invocations", map[string]string{"do": do, "text": text})
	if status != http.StatusOK {
		t.Fatalf("invoke: status %d: %s", status, body)
	}
	if err := json.Unmarshal(body, &got); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return got, header.Get("X-Amz-Function-Error") != ""
}

// The plugin is loaded into LocalStack and runs a real function: answers, errors, a crash and a timeout, and a fresh process
// after either of the last two.
func TestExecutor_RunsFunctionsAsProcesses(t *testing.T) {
	t.Parallel()
	s := startShell(t, "host")
	endpoint := wantVariables(t, s)["AWS_ENDPOINT_URL"]
	api := lambdaAPI{endpoint}
	api.deploy(t, "echo")

	first, failed := api.invoke(t, "echo", "", "grüße")
	if failed || first.Text != "grüße" {
		t.Fatalf("echo gave %+v, failed %t", first, failed)
	}
	if first.Endpoint != endpoint {
		t.Errorf("the function sees AWS_ENDPOINT_URL=%s, want %s", first.Endpoint, endpoint)
	}
	if again, _ := api.invoke(t, "echo", "", "x"); again.Process != first.Process {
		t.Errorf("a warm function ran in process %d, then in %d", first.Process, again.Process)
	}
	for _, c := range []struct{ do, text, want string }{
		{"fail", "no such order", "no such order"},
		{"exit", "", "exit status 3"},
		{"hang", "", "Task timed out after 2.00 seconds"},
	} {
		got, failed := api.invoke(t, "echo", c.do, c.text)
		if !failed || !strings.Contains(got.ErrorMessage, c.want) {
			t.Errorf("%s gave %+v, failed %t; want an error with %q", c.do, got, failed, c.want)
		}
		after, failed := api.invoke(t, "echo", "", c.do)
		if failed || after.Text != c.do {
			t.Errorf("after %s: %+v, failed %t", c.do, after, failed)
		}
		if fresh := after.Process != first.Process; fresh != (c.do != "fail") {
			t.Errorf("after %s: fresh process %t", c.do, fresh)
		}
		first = after
	}
	if got := fmt.Sprint(processes(t, s)); !strings.Contains(got, "/bootstrap") {
		t.Errorf("no function process among %s", got)
	}
}
