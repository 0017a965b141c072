package main

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// The program speaks the protocol on its own streams, and says nothing else there. Package mcp's tests have the protocol.
func TestBinary_MCP_SpeaksOnItsStreams(t *testing.T) {
	t.Parallel()
	p, path := onFile(t)
	writer(t, path, 1)
	p.run(t, 0, "trigger", "greet", `"ada"`, "--id", "later", "--delay", "1h")
	command := exec.CommandContext(t.Context(), binary(), "mcp", "--allow", "cancel", "--actor", "model")
	command.Env = append(os.Environ(), p.environment...)
	in, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	answers := bufio.NewScanner(out)
	answers.Buffer(nil, 1<<20)
	for _, message := range []struct{ text, says string }{
		{`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},` +
			`"clientInfo":{"name":"test","version":"1"}}}`, `"serverInfo":{"name":"runlane"`},
		{`{"jsonrpc":"2.0","method":"notifications/initialized"}`, ""},
		{`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"cancel","arguments":{"run":"later"}}}`, `"status":"cancelled"`},
	} {
		if _, err := io.WriteString(in, message.text+"\n"); err != nil {
			t.Fatal(err)
		}
		if message.says != "" && (!answers.Scan() || !strings.Contains(answers.Text(), message.says)) {
			t.Errorf("%s is answered with %s", message.text, answers.Text())
		}
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if answers.Scan() {
		t.Errorf("it also says %s", answers.Text())
	}
	if err := command.Wait(); err != nil {
		t.Errorf("it ends with %v", err)
	}
	if events, _ := p.run(t, 0, "runs", "events", "later", "--json"); !strings.Contains(events, `"id":"model"`) {
		t.Errorf("%s", events)
	}
}
