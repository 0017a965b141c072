package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// loadAverage is how many processes wanted a processor during the last minute, on average.
func loadAverage() (float64, error) {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0, err
	}
	first, _, _ := strings.Cut(string(text), " ")
	return strconv.ParseFloat(first, 64)
}

// residentMemory is what a process holds, in MB.
func residentMemory(process int) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", process))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "VmRSS:" {
			kibibytes, err := strconv.ParseFloat(fields[1], 64)
			return kibibytes * 1024 / 1e6, err
		}
	}
	return 0, fmt.Errorf("process %d has no VmRSS", process)
}

// clockTick is the unit of processor times that the kernel shows, on every architecture that Go and Linux share.
const clockTick = 10 * time.Millisecond

// processorTime is what a process has computed so far, and what the kernel did for it.
func processorTime(process int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", process))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(text), ") ") // the name before may hold anything
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0, fmt.Errorf("process %d has the times %q", process, text)
	}
	user, err := strconv.ParseInt(fields[11], 10, 64)
	if err != nil {
		return 0, err
	}
	kernel, err := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+kernel) * clockTick, err
}

// profile tells which parts of a bridge's processor time went into what.
type profile struct {
	// own is the handlers' part without their requests to AWS: what this project adds.
	own float64
	// handler is own, and what the SDK computes for a request until it hands it to the network.
	handler float64
}

// What the stacks of a profile are told apart by.
const (
	handlerStacks = `runlane-go/|aws-lambda-go/`
	networkStacks = `net/http\.|internal/poll`
	requestStacks = networkStacks + `|aws-sdk-go-v2/service|smithy-go/middleware`
)

// readProfile waits for a profile and adds it up.
func readProfile(ctx context.Context, program, path string) (p profile, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		if _, err := os.Stat(path); err == nil {
			break
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return p, fmt.Errorf("%s wrote no profile: %w", program, ctx.Err())
		}
	}
	all, err := samples(ctx, program, path)
	if err != nil {
		return p, err
	}
	handler, err := samples(ctx, program, path, "-focus="+handlerStacks, "-ignore="+networkStacks)
	if err != nil {
		return p, err
	}
	own, err := samples(ctx, program, path, "-focus="+handlerStacks, "-ignore="+requestStacks)
	return profile{own: float64(own) / float64(all), handler: float64(handler) / float64(all)}, err
}

var accounting = regexp.MustCompile(`Showing nodes accounting for ([0-9.]+m?s), `)

// samples is the sum of a profile's samples that pass the filters. How much time one stands for depends on the kernel's
// own clock: only the relation of two sums says something.
func samples(ctx context.Context, program, path string, filters ...string) (time.Duration, error) {
	arguments := append([]string{"tool", "pprof", "-top", "-nodecount=1000000", "-nodefraction=0"}, filters...)
	out, err := exec.CommandContext(ctx, "go", append(arguments, program, path)...).Output() // our own
	if err != nil {
		return 0, fmt.Errorf("go tool pprof: %w", err)
	}
	match := accounting.FindSubmatch(out)
	if match == nil {
		return 0, fmt.Errorf("pprof reported: %s", out)
	}
	return time.ParseDuration(string(match[1]))
}
