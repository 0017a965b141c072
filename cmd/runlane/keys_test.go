package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/runlane/runlane-go/internal/proof/awstest"
	"github.com/runlane/runlane-go/sealed"
)

func TestBinary_KeysOfEncryptedPayloads(t *testing.T) {
	t.Parallel()
	key, err := sealed.KeyOf("2026-11", bytes.Repeat([]byte{7}, sealed.KeyBytes))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(file, []byte(key.Line()), 0o600); err != nil {
		t.Fatal(err)
	}
	table, queue := awstest.Table(t, awstest.LocalStackDynamoDB(t)), awstest.Queue(t, awstest.SQS(t), false)
	bare := []string{"RUNLANE_TABLE=" + table, "RUNLANE_QUEUES=default=" + queue.URL, "USER=ada", "RUNLANE_KEYS=", "RUNLANE_KEYS_FILE="}
	with := &program{environment: append(slices.Clone(bare), "RUNLANE_KEYS_FILE="+file)}
	with.run(t, 0, "trigger", "letter.send", `{"to":"u_1"}`, "--id", "run_1", "--foreign")
	if out, _ := with.run(t, 0, "runs", "get", "run_1", "--payload"); out != `{"to":"u_1"}` {
		t.Errorf("with the key: %s", out)
	}
	without := &program{environment: bare}
	if out, _ := without.run(t, 0, "runs", "get", "run_1"); strings.Contains(out, "u_1") || !strings.Contains(out, `key "2026-11"`) {
		t.Errorf("without the key:\n%s", out)
	}
	without.run(t, 1, "runs", "get", "run_1", "--payload")
	for text, says := range map[string]string{ // a secret without its name
		strings.TrimPrefix(key.Line(), "2026-11="): "key 1 has no secret, or no name",
		strings.Repeat("+abc", 10) + "+aw=":        "the name of key 1 has other characters",
	} {
		wrong := &program{environment: append(slices.Clone(bare), "RUNLANE_KEYS="+text)}
		if _, news := wrong.run(t, 2, "runs", "list"); !strings.Contains(news, says) || strings.Contains(news, text[:20]) {
			t.Errorf("keys that cannot be read: %s", news)
		}
	}
}
