package sqlitelane_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/runlane/runlane-go/lanetest"
	"github.com/runlane/runlane-go/sqlitelane"
	"github.com/runlane/runlane-go/sqlitelane/internal/powerloss"
)

// said is an acknowledgment, and what had happened to the disk when it was made.
type said struct {
	line string
	at   int
}

// live does deeds of some kinds, side by side, on a disk that writes everything down.
func live(t *testing.T, disk *powerloss.Disk, relaxed bool, rounds int, names ...string) (lines []said) {
	t.Helper()
	path := newPath(t)
	s := sqlitelane.NewStorageOn(path, disk, relaxed)
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.SetCheckpoint(40); err != nil { // so that the log is copied into the file and begins anew now and then
		t.Fatal(err)
	}
	var mu sync.Mutex
	d := &deeds{t: t, s: s, w: deedsTransport(s), f: lanetest.NewFactory(deedsEnvironment)}
	d.ack = func(line string) {
		mu.Lock()
		defer mu.Unlock()
		lines = append(lines, said{line, disk.Now()})
	}
	var all sync.WaitGroup
	for _, name := range names {
		all.Go(func() {
			for n := range rounds {
				if err := kinds[name](d, n); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		})
	}
	all.Wait()
	if err := s.Close(context.Background()); err != nil {
		t.Error(err)
	}
	return lines
}

// outcomes counts what power losses led to.
type outcomes struct {
	points, images int
	lost           []string
}

// loseEach loses the power right before and after every sync, in every way, and opens what is left.
func loseEach(t *testing.T, disk *powerloss.Disk, lines []said, seed uint64) (o outcomes) {
	t.Helper()
	disk.Crashes(func(c powerloss.Crash) {
		o.points++
		w := newWitness()
		for _, l := range lines {
			if l.at <= c.At {
				if err := w.hear(l.line); err != nil {
					t.Fatal(err)
				}
			}
		}
		seen := map[string]bool{}
		for _, fate := range powerloss.Fates() {
			image := c.After(fate, seed)
			key := fingerprint(image)
			if seen[key] {
				continue // nothing was unsynced: every fate is the same
			}
			seen[key] = true
			o.images++
			for _, fault := range reopen(t, image, w) {
				o.lost = append(o.lost, fmt.Sprintf("power lost after step %d, unsynced writes %s, seed %d: %s", c.At, fate, seed, fault))
			}
		}
	})
	return o
}

func fingerprint(image map[string][]byte) string {
	key := ""
	for _, name := range slices.Sorted(maps.Keys(image)) {
		key += fmt.Sprint(name, len(image[name]), " ") + string(image[name])
	}
	return key
}

// reopen starts a process over what the disk holds, and says what is missing.
func reopen(t *testing.T, image map[string][]byte, w *witness) []string {
	t.Helper()
	folder := filepath.Join(memoryFolder(t), "image")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	for name, content := range image {
		if err := os.WriteFile(filepath.Join(folder, filepath.Base(name)), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := sqlitelane.NewStorage(filepath.Join(folder, "runlane.db"), 0)
	if err := s.Start(context.Background()); err != nil {
		return []string{"it does not open: " + err.Error()}
	}
	defer func() { _ = s.Close(context.Background()) }()
	missing, err := w.missing(s, deedsTransport(s))
	if err != nil {
		return []string{err.Error()}
	}
	return missing
}

// What a commit that returned wrote is there after any loss of power: before and after every sync, whatever the disk
// made of what was not synced.
func TestPowerLoss_LosesNothingThatWasCommitted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rounds int
		kinds  []string
	}{
		"lives":     {4, []string{"life", "life", "retry"}},
		"bounded":   {5, []string{"bounded", "bounded"}},
		"outbox":    {6, []string{"outbox", "wakeup"}},
		"ordered":   {6, []string{"ordered", "ordered"}},
		"schedules": {8, []string{"schedule"}},
		"pruning":   {8, []string{"life", "prune"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			disk, err := powerloss.NewDisk()
			if err != nil {
				t.Fatal(err)
			}
			disk.Records = true
			lines := live(t, disk, false, c.rounds, c.kinds...)
			o := loseEach(t, disk, lines, 1)
			for _, fault := range o.lost {
				t.Error(fault)
			}
			if o.points < 20 || len(lines) < 8 {
				t.Errorf("only %d points and %d acknowledgments: this proves little", o.points, len(lines))
			}
			t.Logf("reliability: power loss scenario=%s points=%d outcomes=%d acknowledged=%d lost=%d",
				name, o.points, o.images, len(lines), len(o.lost))
		})
	}
}

// With SyncNormal the last commits may be lost with the power, and nothing is broken: the file is as it was at one
// moment. That some are lost shows that the disk of these tests loses what is not synced.
func TestPowerLoss_RelaxedLosesTheLastCommitsAndBreaksNothing(t *testing.T) {
	t.Parallel()
	disk, err := powerloss.NewDisk()
	if err != nil {
		t.Fatal(err)
	}
	disk.Records = true
	lines := live(t, disk, true, 6, "life", "outbox")
	nothing := loseEach(t, disk, nil, 1)
	for _, fault := range nothing.lost {
		t.Error(fault)
	}
	if o := loseEach(t, disk, lines, 1); len(o.lost) == 0 {
		t.Error("nothing is lost: the disk loses nothing, and the other tests prove nothing")
	}
	t.Logf("reliability: power loss, relaxed points=%d outcomes=%d", nothing.points, nothing.images)
}
