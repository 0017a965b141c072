package sqlitelane_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/runlane/runlane-go/internal/proof/crash"
	"github.com/runlane/runlane-go/sqlitelane/internal/powerloss"
)

// powered is a scenario that was lived on a disk that writes everything down.
type powered struct {
	*crash.Process

	disk  *powerloss.Disk
	from  int // what happened to the disk after it is what the scenario did, and not what it was prepared with
	mu    sync.Mutex
	notes []note
	seen  map[string]bool // contents that losses left
}

// note is something that was said, or done, outside the file: a run was promised, or an attempt had its side effect. It
// stays so when the power is lost after at.
type note struct {
	crash.Effect

	at int
}

func lived(t *testing.T, s *crash.Scenario) *powered {
	t.Helper()
	disk, err := powerloss.NewDisk()
	if err != nil {
		t.Fatal(err)
	}
	disk.Records = true
	l := &powered{Process: newProcess(t, s.Name, memoryFolder(t), disk), disk: disk, seen: map[string]bool{}}
	l.Note = func(e crash.Effect) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.notes = append(l.notes, note{e, disk.Now()})
	}
	l.Open(s)
	if s.Prepare != nil {
		s.Prepare(l.Process)
	}
	l.from = disk.Now()
	l.Live(s)
	l.Close()
	return l
}

func newProcess(t *testing.T, name, folder string, disk *powerloss.Disk) *crash.Process {
	t.Helper()
	l := &crashLane{path: filepath.Join(folder, "runlane.db"), disk: disk}
	return crash.NewProcess(t, name, filepath.Join(folder, "ledger"), l)
}

// after is a process over what a disk holds whose power was lost.
func (l *powered) after(t *testing.T, folder string, c *powerloss.Crash, image map[string][]byte) *crash.Process {
	t.Helper()
	p := newProcess(t, l.Scenario, folder, nil)
	p.Ahead, p.Arguments = l.Moved(), maps.Clone(l.Arguments)
	maps.Copy(p.Gone, l.Gone)
	for name, content := range image {
		p.Must(os.WriteFile(filepath.Join(folder, filepath.Base(name)), content, 0o600))
	}
	for _, n := range l.notes {
		switch {
		case n.at > c.At:
		case n.Attempt == 0:
			p.Promise(n.Run)
		default:
			p.Must(p.Enter(n.Effect))
		}
	}
	return p
}

// goesOn opens what is left, and takes over unless another loss had left the same.
func (l *powered) goesOn(t *testing.T, s *crash.Scenario, c *powerloss.Crash, image map[string][]byte) (faults []string) {
	t.Helper()
	folder := filepath.Join(memoryFolder(t), "image")
	l.Must(os.Mkdir(folder, 0o700))
	defer func() { _ = os.RemoveAll(folder) }()
	p := l.after(t, folder, c, image)
	p.Open(s)
	defer p.Close()
	storage := p.Lane.(*crashLane).storage
	fault, err := storage.Sound()
	p.Must(err)
	if fault != "" {
		return []string{"the file: " + fault}
	}
	contents, err := storage.Contents()
	p.Must(err)
	if contents += fmt.Sprint(p.Promised, p.Effects()); l.seen[contents] {
		return nil
	}
	l.seen[contents] = true
	found, err := crash.Violations(t.Context(), storage, p.Runtime.Environment())
	p.Must(err)
	for _, v := range found {
		p.Fault("when it opened, %s: %s: %s", v.RunID, v.Rule, v.Detail)
	}
	p.Recover(s)
	return p.Settle(s).Faults()
}

// Runs lose nothing, and do nothing twice, when the power is lost before or after any sync of what a process did.
func TestPowerLoss_Runs_GoOn(t *testing.T) {
	t.Parallel()
	for _, s := range crashScenarios() {
		if !s.Waits && !thorough {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			l := lived(t, &s)
			points, images, lost := 0, 0, 0
			l.disk.Crashes(func(c powerloss.Crash) {
				if c.At < l.from {
					return
				}
				points++
				same := map[string]bool{}
				for _, fate := range powerloss.Fates() {
					image := c.After(fate, 1)
					key := fingerprint(image)
					if same[key] {
						continue
					}
					same[key] = true
					images++
					for _, fault := range l.goesOn(t, &s, &c, image) {
						lost++
						t.Errorf("power lost after step %d, unsynced writes %s: %s", c.At, fate, fault)
					}
				}
			})
			if points < 2 || s.Waits && len(l.seen) < 2 { // some ticks write nothing to a file but what every tick does
				t.Errorf("only %d points and %d contents: this proves little", points, len(l.seen))
			}
			t.Logf("reliability: power loss scenario=%s points=%d outcomes=%d contents=%d lost=%d",
				strings.ReplaceAll(s.Name, " ", "-"), points, images, len(l.seen), lost)
		})
	}
}
