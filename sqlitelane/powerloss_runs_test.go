package sqlitelane_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/sqlitelane/internal/powerloss"
)

// note is something that was said, or done, outside the file: a run was promised, or an attempt, whose number is not 0,
// had its side effect. It stays so when the power is lost after at.
type note struct {
	effect

	at int
}

func (s *site) note(e effect) {
	if s.disk == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notes = append(s.notes, note{e, s.disk.Now()})
}

// powered lives a scenario on a disk that writes everything down. What happens to the disk after from is what the
// scenario did, and not what it was prepared with.
func powered(t *testing.T, name string, c *crashScenario) (s *site, from int) {
	t.Helper()
	disk, err := powerloss.NewDisk()
	if err != nil {
		t.Fatal(err)
	}
	disk.Records = true
	s = newSite(t, name, memoryFolder(t))
	s.disk = disk
	s.open(c)
	if c.prepare != nil {
		c.prepare(s)
	}
	from = disk.Now()
	s.must(c.act(context.Background(), s))
	s.must(s.rt.Close(context.Background()))
	return s, from
}

// after is a process over what a disk holds whose power was lost.
func (s *site) after(t *testing.T, folder string, c *powerloss.Crash, image map[string][]byte) *site {
	t.Helper()
	other := newSite(t, s.Scenario, folder)
	other.Ahead, other.Arguments = s.Ahead, maps.Clone(s.Arguments)
	maps.Copy(other.gone, s.gone)
	for name, content := range image {
		s.must(os.WriteFile(filepath.Join(folder, filepath.Base(name)), content, 0o600))
	}
	for _, n := range s.notes {
		switch {
		case n.at > c.At:
		case n.attempt == 0:
			other.promise(n.run)
		default:
			s.must(other.enter(n.effect))
		}
	}
	return other
}

// goesOn opens what is left, and takes over unless another loss had left the same.
func goesOn(
	t *testing.T, s *site, scenario *crashScenario, c *powerloss.Crash, image map[string][]byte, seen map[string]bool,
) (faults []string) {
	t.Helper()
	folder := filepath.Join(memoryFolder(t), "image")
	s.must(os.Mkdir(folder, 0o700))
	defer func() { _ = os.RemoveAll(folder) }()
	other := s.after(t, folder, c, image)
	other.open(scenario)
	defer func() { other.must(other.rt.Close(context.Background())) }()
	fault, err := other.storage.Sound()
	other.must(err)
	if fault != "" {
		return []string{"the file: " + fault}
	}
	contents, err := other.storage.Contents()
	other.must(err)
	if contents += fmt.Sprint(other.runs, other.effects()); seen[contents] {
		return nil
	}
	seen[contents] = true
	found, err := violations(context.Background(), other.storage, runlane.DefaultEnvironment)
	other.must(err)
	for _, v := range found {
		other.fault("when it opened, %s: %s: %s", v.RunID, v.Rule, v.Detail)
	}
	other.recover(scenario)
	other.settle(scenario, &trial{})
	return other.faults
}

// Runs that wait lose nothing, and do nothing twice, when the power is lost before or after any sync of what made them
// wait, what answered them, and what they did then.
func TestPowerLoss_RunsThatWait_GoOn(t *testing.T) {
	t.Parallel()
	for name, scenario := range waits() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, from := powered(t, name, &scenario)
			points, images, lost, seen := 0, 0, 0, map[string]bool{}
			s.disk.Crashes(func(c powerloss.Crash) {
				if c.At < from {
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
					for _, fault := range goesOn(t, s, &scenario, &c, image, seen) {
						lost++
						t.Errorf("power lost after step %d, unsynced writes %s: %s", c.At, fate, fault)
					}
				}
			})
			if points < 2 || len(seen) < 2 {
				t.Errorf("only %d points and %d contents: this proves little", points, len(seen))
			}
			t.Logf("reliability: power loss scenario=%s points=%d outcomes=%d contents=%d lost=%d",
				strings.ReplaceAll(name, " ", "-"), points, images, len(seen), lost)
		})
	}
}
