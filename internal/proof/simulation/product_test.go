package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

const projectRoot = "../../.."

// source reads a file of the project.
func source(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(projectRoot, file))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// constant is the expression that a Go file gives a constant.
func constant(text, name string) (expression string, ok bool) {
	match := regexp.MustCompile(`(?m)^\s*(?:const )?` + regexp.QuoteMeta(name) + `\s+(?:[\w.]+ )?= (.+?)(?:\s*//.*)?$`).FindStringSubmatch(text)
	if match == nil {
		return "", false
	}
	return match[1], true
}

// value computes "70 * time.Second", "time.Minute", "8" and "1_000".
func value(t *testing.T, expression string) float64 {
	t.Helper()
	product := 1.0
	for _, factor := range strings.Split(expression, "*") {
		factor = strings.TrimSpace(factor)
		units := map[string]time.Duration{
			"time.Hour": time.Hour, "time.Minute": time.Minute, "time.Second": time.Second, "time.Millisecond": time.Millisecond,
		}
		if unit, ok := units[factor]; ok {
			product *= float64(unit)
			continue
		}
		n, err := strconv.ParseFloat(strings.ReplaceAll(factor, "_", ""), 64)
		if err != nil {
			t.Fatalf("%q is no constant that this test can compute", expression)
		}
		product *= n
	}
	return product
}

func TestConstants_AreTheProducts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		file, name string
		ours       float64
	}{
		{"dynamostore/internal/rows/marker.go", "DefaultShards", defaultShards},
		{"dynamostore/internal/ddb/pace.go", "maxConflictTries", maxConflictTries},
		{"dynamostore/internal/ddb/pace.go", "throttleBackoff", float64(throttleBackoff)},
		{"dynamostore/scan.go", "maxScanChunk", maxScanChunk},
		{"dynamostore/internal/ddb/table.go", "BatchKeys", batchKeys},
		{"dynamostore/internal/ddb/pace.go", "MaxParallel", maxParallel},
		{"dynamostore/internal/rows/log.go", "RedeliverFirst", float64(firstRedelivery)},
		{"dynamostore/internal/rows/log.go", "redeliverMost", float64(lastRedelivery)},
		{"core/tick.go", "defaultTickLimit", defaultTickLimit},
		{"core/tick.go", "queuedPatience", float64(queuedPatience)},
		{"core/tick.go", "shortWaitPatience", float64(shortWaitPatience)},
		{"core/tick.go", "backlogDepth", backlogDepth},
		{"core/tick.go", "maxBacklogWait", float64(maxBacklogWait)},
		{"core/tick.go", "tickParallel", tickParallel},
		{"core/publish.go", "publishBatch", publishBatch},
		{"core/tick.go", "aheadTime", float64(aheadTime)},
		{"core/tick.go", "aheadPages", aheadPages},
		{"core/tick.go", "minTickRound", float64(minTickRound)},
		{"functions/tick.go", "minTickReserve", float64(minTickReserve)},
		{"functions/tick.go", "tickReserveShare", tickReserveShare},
		{"core/outcome.go", "outcomeBackoffBase", float64(outcomeBackoffBase)},
		{"core/outcome.go", "outcomeBackoffMax", float64(outcomeBackoffMax)},
		{"core/invocation.go", "leaseAfterDeadline", float64(leaseAfterDeadline)},
		{"queue.go", "MaxQueueConcurrency", maxLimit},
		{"core/publish.go", "afterCommitTime", float64(afterCommitTime)},
		{"core/slots.go", "handOverRounds", handOverRounds},
		{"dynamostore/internal/rows/slot.go", "SlotWindow", slotWindow},
		{"dynamostore/slots.go", "creationWindows", creationWindows},
		{"dynamostore/slots.go", "reservationWindows", reservationWindows},
		{"dynamostore/commit.go", "slotTries", slotTries},
		{"dynamostore/create.go", "slotPatience", slotPatience},
		{"dynamostore/store.go", "DefaultRequestTimeout", float64(requestTimeout)},
		{"dynamostore/offer.go", "offerPages", offerPages},
		{"dynamostore/offer.go", "offerRows", offerRows},
		{"dynamostore/offer.go", "offerReads", offerReads},
		{"sqstransport/handback.go", "firstHandBack", float64(firstHandBack)},
		{"sqstransport/handback.go", "lastHandBack", float64(lastHandBack)},
		{"retry.go", "DefaultBackoffBase", float64(defaultBackoffBase)},
		{"retry.go", "DefaultBackoffMax", float64(defaultBackoffMax)},
		{"runlane.go", "DefaultMaxAbandoned", maxAbandoned},
	} {
		expression, ok := constant(source(t, c.file), c.name)
		if !ok {
			t.Errorf("%s has no constant %s", c.file, c.name)
			continue
		}
		if theirs := value(t, expression); theirs != c.ours {
			t.Errorf("%s: %s is %s there and %v here", c.file, c.name, expression, c.ours)
		}
	}
}

func TestConstant_FindsWhatDiffers(t *testing.T) {
	t.Parallel()
	text := "const (\n\tshort = 3 * time.Second // why\n\tlonger         = 8\n)\nconst single time.Duration = time.Minute\n"
	for name, want := range map[string]float64{"short": float64(3 * time.Second), "longer": 8, "single": float64(time.Minute)} {
		expression, ok := constant(text, name)
		if !ok || value(t, expression) != want {
			t.Errorf("%s: %q", name, expression)
		}
	}
	if _, ok := constant(text, "other"); ok {
		t.Error("a constant that is not there was found")
	}
}

// The stages of a tick and their shares stand in core's tick in one list.
func TestStageShares_AreTheProducts(t *testing.T) {
	t.Parallel()
	var shares []int
	for _, match := range regexp.MustCompile(`\{t\.\w+, (\d+)\}`).FindAllStringSubmatch(source(t, "core/tick.go"), -1) {
		share, err := strconv.Atoi(match[1])
		if err != nil {
			t.Fatal(err)
		}
		shares = append(shares, share)
	}
	if len(shares) != len(stageShares) {
		t.Fatalf("%v there, %v here", shares, stageShares)
	}
	for i := range shares {
		if shares[i] != stageShares[i] {
			t.Errorf("stage %d has share %d there and %d here", i, shares[i], stageShares[i])
		}
	}
}

func TestScanKinds_AreTheProducts(t *testing.T) {
	t.Parallel()
	text := source(t, "dynamostore/internal/rows/classify.go")
	names := map[stage]string{
		finalizing: "Finalizing", delivering: "Delivering", publishing: "Publishing", redelivering: "Redelivering", telling: "Telling",
	}
	kinds := map[marker]string{
		deliverable: "Deliverable", unpublished: "Unpublished", waiting: "Waiting", parked: "Parked", leased: "Leased", ended: "Ended",
	}
	for stage, name := range names {
		match := regexp.MustCompile(`(?m)^\t` + name + `:\s+\{(.*?)\}`).FindStringSubmatch(text)
		if match == nil {
			t.Errorf("no kinds of %s", name)
			continue
		}
		var ours []string
		for _, kind := range scanKinds[stage] {
			ours = append(ours, kinds[kind])
		}
		if theirs := strings.TrimSuffix(match[1], ", Slotless"); theirs != strings.Join(ours, ", ") {
			t.Errorf("%s looks at %s there and at %v here", name, theirs, ours)
		}
	}
}

func TestDeployment_IsTheTemplates(t *testing.T) {
	t.Parallel()
	var template struct {
		Parameters map[string]struct {
			Default string `yaml:"Default"`
		} `yaml:"Parameters"`
		Resources map[string]yaml.Node `yaml:"Resources"`
	}
	text := source(t, "template.yaml")
	if err := yaml.Unmarshal([]byte(text), &template); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"BridgeConcurrency": strconv.Itoa(bridgeConcurrency), "BridgeBatchSize": strconv.Itoa(bridgeBatchSize),
		"BridgeTimeout": strconv.Itoa(int(bridgeTimeout / time.Second)),
	} {
		if got := template.Parameters[name].Default; got != want {
			t.Errorf("%s is %s there and %s here", name, got, want)
		}
	}
	for resource, line := range map[string]string{
		"Tick":      "Timeout: " + strconv.Itoa(int(tickTimeout/time.Second)),
		"WorkQueue": "maxReceiveCount: " + strconv.Itoa(maxReceiveCount),
		"Relay":     "BatchSize: " + strconv.Itoa(relayBatchSize),
	} {
		node := template.Resources[resource]
		out, err := yaml.Marshal(&node)
		if err != nil {
			t.Fatal(err)
		}
		if !regexp.MustCompile(`(?m)^\s*` + regexp.QuoteMeta(line) + `$`).Match(out) {
			t.Errorf("%s does not say %q:\n%s", resource, line, out)
		}
	}
}
