package localstack_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/runlane/runlane-go/infra"
)

// startShell brings up a local AWS of this test's own.
func startShell(t *testing.T, mode string) *shell {
	t.Helper()
	s := stoppedShell(t, mode)
	s.mustRun(t, "up.sh")
	return s
}

// stoppedShell makes sure that no local AWS of this test outlives it.
func stoppedShell(t *testing.T, mode string) *shell {
	t.Helper()
	if testing.Short() {
		t.Skip("starts local AWS")
	}
	s := newShell(t)
	s.env["RUNLANE_LOCAL_MODE"] = mode
	t.Cleanup(func() {
		out, err := s.command(context.Background(), "down.sh").CombinedOutput()
		if err != nil {
			t.Errorf("down.sh: %v\n%s", err, out)
		}
		if left := processes(t, s); len(left) > 0 {
			t.Errorf("still running after down.sh: %q", left)
		}
	})
	return s
}

// processes are those that have the state folder in their command line: LocalStack, DynamoDB Local and functions.
func processes(t *testing.T, s *shell) []string {
	t.Helper()
	out, err := exec.Command("ps", "-axww", "-o", "args=").Output()
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, s.state) {
			found = append(found, strings.TrimSpace(line))
		}
	}
	return found
}

func tables(endpoint, accessKey string) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		BaseEndpoint: aws.String(endpoint), Region: "us-east-1", DisableValidateResponseChecksum: true,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: accessKey, SecretAccessKey: "test"}, nil
		}),
	})
}

func answers(endpoint string) bool {
	connection, err := net.DialTimeout("tcp", strings.TrimPrefix(endpoint, "http://"), time.Second)
	if err != nil {
		return false
	}
	_ = connection.Close()
	return true
}

func TestLocalAWS_TwoFolders_StopIndependently(t *testing.T) {
	t.Parallel()
	first, second := startShell(t, ""), startShell(t, "")
	one, two := wantVariables(t, first), wantVariables(t, second)
	for _, name := range []string{"AWS_ENDPOINT_URL", "RUNLANE_LOCAL_DYNAMODB"} {
		if one[name] == two[name] {
			t.Fatalf("both have %s=%s", name, one[name])
		}
	}
	check := func(v map[string]string) {
		t.Helper()
		if err := infra.CheckTable(t.Context(), tables(v["AWS_ENDPOINT_URL"], "test"), v["RUNLANE_TABLE"]); err != nil {
			t.Error(err)
		}
	}
	check(one)
	check(two)
	hasOneDatabaseAnAccessKey(t, two["RUNLANE_LOCAL_DYNAMODB"])
	if out := first.mustRun(t, "up.sh"); first.variables(t, "env")["AWS_ENDPOINT_URL"] != one["AWS_ENDPOINT_URL"] {
		t.Errorf("a second up changed the endpoint: %s", out)
	}

	first.mustRun(t, "down.sh")
	for _, name := range []string{"AWS_ENDPOINT_URL", "RUNLANE_LOCAL_DYNAMODB"} {
		if answers(one[name]) {
			t.Errorf("%s of the stopped one still answers", name)
		}
		if !answers(two[name]) {
			t.Errorf("%s of the other one answers no more", name)
		}
	}
	if left := processes(t, first); len(left) > 0 {
		t.Errorf("processes of the stopped one: %q", left)
	}
	check(two)

	second.mustRun(t, "down.sh")
	if answers(two["AWS_ENDPOINT_URL"]) || answers(two["RUNLANE_LOCAL_DYNAMODB"]) {
		t.Error("the second one still answers after its down")
	}
}

// Nothing of it is to be had from another machine, and Ctrl-C in the terminal does not end it before what uses it.
func TestModeTests_ServesOnLoopbackUntilDown(t *testing.T) {
	t.Parallel()
	s := startShell(t, "tests")
	v := s.variables(t, "env")
	db, queues := v["AWS_ENDPOINT_URL_DYNAMODB"], v["AWS_ENDPOINT_URL"]
	if v["AWS_ENDPOINT_URL_DYNAMODB_STREAMS"] != db || v["RUNLANE_LOCAL_DYNAMODB"] != db {
		t.Errorf("DynamoDB has several endpoints: %v", v)
	}
	hasOneDatabaseAnAccessKey(t, db)
	client := sqs.New(sqs.Options{
		BaseEndpoint: aws.String(queues), Region: v["AWS_REGION"], Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
	})
	created, err := client.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("mail")})
	if err != nil || !strings.HasPrefix(aws.ToString(created.QueueUrl), queues+"/") {
		t.Errorf("queue %v, %v: want one below %s", created, err, queues)
	}
	for _, endpoint := range []string{db, queues} {
		// Who listens on every interface answers at every loopback address.
		if !answers(endpoint) || answers("127.0.0.2"+endpoint[strings.LastIndex(endpoint, ":"):]) {
			t.Errorf("%s is not on 127.0.0.1, or not there alone", endpoint)
		}
	}

	pid, err := strconv.Atoi(s.file(t, "pid"))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	s.mustRun(t, "up.sh")
	if got := s.variables(t, "env")["AWS_ENDPOINT_URL"]; got != queues {
		t.Errorf("after an interrupt it is at %s, no more at %s", got, queues)
	}
	s.mustRun(t, "down.sh")
	if answers(db) || answers(queues) {
		t.Error("it still answers after down")
	}
}

// hasOneDatabaseAnAccessKey is what tests beside each other rely on.
func hasOneDatabaseAnAccessKey(t *testing.T, endpoint string) {
	t.Helper()
	if err := infra.CreateTable(t.Context(), tables(endpoint, "111111111111"), "mine"); err != nil {
		t.Fatal(err)
	}
	out, err := tables(endpoint, "222222222222").ListTables(t.Context(), &dynamodb.ListTablesInput{})
	if err != nil {
		t.Fatal(err)
	}
	if len(out.TableNames) > 0 {
		t.Errorf("another access key sees tables %q, want none", out.TableNames)
	}
}

// LocalStack that is killed leaves its children behind; down finds them, and up starts anew.
func TestHostMode_LocalStackKilled_DownEndsItsChildren(t *testing.T) {
	t.Parallel()
	s := startShell(t, "host")
	before := wantVariables(t, s)
	pid, err := strconv.Atoi(s.file(t, "pid"))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(time.Minute)
	for answers(before["AWS_ENDPOINT_URL"]) && time.Now().Before(deadline) {
		<-time.After(50 * time.Millisecond)
	}
	if !answers(before["RUNLANE_LOCAL_DYNAMODB"]) {
		t.Fatal("DynamoDB Local ended by itself: this test proves nothing")
	}
	s.env["AWS_ENDPOINT_URL"] = before["AWS_ENDPOINT_URL"] // as in the shell that has loaded the env file
	s.mustRun(t, "up.sh")
	if answers(before["RUNLANE_LOCAL_DYNAMODB"]) {
		t.Error("the old DynamoDB Local still answers")
	}
	after := wantVariables(t, s)
	if err := infra.CheckTable(t.Context(), tables(after["AWS_ENDPOINT_URL"], "test"), after["RUNLANE_TABLE"]); err != nil {
		t.Error(err)
	}
}

// Between the choice of a port and the server that listens there, another program may take it, and answer.
func TestHostMode_DynamoDBPortTaken_AnotherIsChosen(t *testing.T) {
	t.Parallel()
	s := stoppedShell(t, "host")
	up := make(chan struct{})
	go func() {
		defer close(up)
		s.run(t, "up.sh")
	}()
	recorded := "" // as soon as it is written, long before DynamoDB Local is started
	for recorded == "" {
		select {
		case <-up:
			t.Fatal("up.sh ended before it recorded its endpoints")
		case <-time.After(5 * time.Millisecond):
			recorded = s.file(t, "endpoints")
		}
	}
	_, taken, _ := strings.Cut(recorded, " http://")
	listener, err := net.Listen("tcp", taken)
	if err != nil {
		t.Fatal(err)
	}
	other := &httptest.Server{Listener: listener, Config: &http.Server{Handler: http.NotFoundHandler()}}
	other.Start()
	t.Cleanup(other.Close)
	<-up
	v := wantVariables(t, s)
	if v["RUNLANE_LOCAL_DYNAMODB"] == "http://"+taken {
		t.Error("the port that another server has was recorded as DynamoDB's")
	}
	if err := infra.CheckTable(t.Context(), tables(v["AWS_ENDPOINT_URL"], "test"), v["RUNLANE_TABLE"]); err != nil {
		t.Error(err)
	}
}
