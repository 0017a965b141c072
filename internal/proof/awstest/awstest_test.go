package awstest

import (
	"runtime"
	"testing"
)

// doomed is a test that may fail.
type doomed struct {
	testing.TB
	said string
}

func (d *doomed) Fatal(args ...any) {
	d.said, _ = args[0].(string)
	runtime.Goexit()
}

func (d *doomed) Fatalf(format string, _ ...any) { d.Fatal(format) }

// refusalOf is what a function says that ends a test; "" where it ends none.
func refusalOf(t *testing.T, f func(testing.TB)) string {
	t.Helper()
	d := &doomed{TB: t}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f(d)
	}()
	<-ended
	return d.said
}

// A client needs the endpoint for its service and no other, and never goes to AWS itself.
func TestClients_NeedTheEndpointOfTheirOwnService(t *testing.T) {
	if testing.Short() {
		t.Skip("-short makes no client")
	}
	for _, c := range []struct {
		set             string
		dynamodb, queue bool
	}{
		{"AWS_ENDPOINT_URL", true, true},
		{"AWS_ENDPOINT_URL_DYNAMODB", true, false},
		{"AWS_ENDPOINT_URL_SQS", false, true},
		{"AWS_ENDPOINT_URL_LAMBDA", false, false},
	} {
		for _, name := range []string{"AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_DYNAMODB", "AWS_ENDPOINT_URL_SQS"} {
			t.Setenv(name, "")
		}
		t.Setenv(c.set, "http://127.0.0.1:1")
		if said := refusalOf(t, func(t testing.TB) { t.Helper(); DynamoDB(t) }); (said == "") != c.dynamodb {
			t.Errorf("%s: a client of DynamoDB: %q", c.set, said)
		}
		if said := refusalOf(t, func(t testing.TB) { t.Helper(); SQS(t) }); (said == "") != c.queue {
			t.Errorf("%s: a client of SQS: %q", c.set, said)
		}
	}
}
