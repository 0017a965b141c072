package main

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestFigure_SaysWhetherItHolds(t *testing.T) {
	t.Parallel()
	good, bad := figure{"a", 4.9, "MiB", 5, "note"}, figure{"a", 5.1, "MiB", 5, ""}
	if !strings.Contains(good.String(), " ok ") || !strings.Contains(good.String(), "4.90 MiB  at most 5") {
		t.Errorf("%q", good)
	}
	if !strings.Contains(bad.String(), "FALLS SHORT") {
		t.Errorf("%q", bad)
	}
}

func TestQuantile(t *testing.T) {
	t.Parallel()
	values := []float64{5, 1, 4, 2, 3}
	if m, q := median(values), quantile(values, 0.9); m != 3 || q != 5 || values[0] != 5 {
		t.Errorf("median %v, quantile %v, of %v", m, q, values)
	}
}

func TestZips_WithoutABuild_SayWhatToDo(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if _, err := zips(folder); err == nil || !strings.Contains(err.Error(), "make build") {
		t.Errorf("error is %v", err)
	}
	for _, role := range []string{"bridge", "relay", "tick", "server"} {
		if err := os.WriteFile(filepath.Join(folder, role+".zip"), make([]byte, 1<<19), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if figures, err := zips(folder); err != nil || len(figures) != 4 || figures[0].value != 0.5 {
		t.Errorf("%v, %v", figures, err)
	}
}

func TestProcess_ReadsItsOwnFigures(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		return // the figures are read from /proc
	}
	if megabytes, err := residentMemory(os.Getpid()); err != nil || megabytes < 1 || megabytes > 10_000 {
		t.Errorf("%v MB, %v", megabytes, err)
	}
	before, err := processorTime(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for after := before; after == before; {
		if after, err = processorTime(os.Getpid()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := processorTime(-1); err == nil {
		t.Error("there is no such process")
	}
}
