package chaos_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/runlane/runlane-go/internal/proof/chaos"
)

func TestPlan_SameSeed_SamePlan(t *testing.T) {
	t.Parallel()
	one, same, other := chaos.NewPlan(7, time.Minute), chaos.NewPlan(7, time.Minute), chaos.NewPlan(8, time.Minute)
	if one.String() != same.String() {
		t.Errorf("the same seed gave two plans:\n%s%s", one, same)
	}
	if strings.Join(strings.Split(one.String(), "\n")[1:], "") == strings.Join(strings.Split(other.String(), "\n")[1:], "") {
		t.Error("another seed gave the same plan")
	}
}

func TestPlan_EveryKindThatHasATime_IsInItInOrder(t *testing.T) {
	t.Parallel()
	for _, duration := range []time.Duration{30 * time.Second, 3 * time.Minute, 30 * time.Minute} {
		for seed := range uint64(50) {
			p := chaos.NewPlan(seed, duration)
			count := map[chaos.Kind]int{}
			lastEmptied, firstMessage := time.Duration(0), duration
			for i, s := range p.Steps {
				count[s.Kind]++
				if s.At < 0 || s.At+s.For > duration || i > 0 && s.At < p.Steps[i-1].At {
					t.Fatalf("step %d of seed %d is out of place:\n%s", i, seed, p)
				}
				switch s.Kind {
				case chaos.QueueEmptied:
					lastEmptied = s.At
				case chaos.PoisonMessage:
					firstMessage = min(firstMessage, s.At)
				default:
				}
			}
			if firstMessage < lastEmptied {
				t.Errorf("the poison message of seed %d may get lost:\n%s", seed, p)
			}
			for _, kind := range chaos.Kinds()[:7] {
				if count[kind] == 0 {
					t.Errorf("seed %d has no %s", seed, kind)
				}
			}
		}
	}
}

func TestPlan_LongForm_StopsTheTickForFiveMinutes(t *testing.T) {
	t.Parallel()
	p := chaos.NewPlan(1, 30*time.Minute)
	at := slices.IndexFunc(p.Steps, func(s chaos.Step) bool { return s.Kind == chaos.TickStopped })
	if p.Steps[at].For != 5*time.Minute {
		t.Errorf("the tick stops for %s", p.Steps[at].For)
	}
}

func TestFaults_OnlyStrikeWhileTheyAreOn(t *testing.T) {
	t.Parallel()
	f := chaos.NewFaults(1)
	hits := func() (n int) {
		for range 1000 {
			if f.Strikes(chaos.Conflict, 0.2) {
				n++
			}
		}
		return n
	}
	before := hits()
	f.Switch(true)
	during := hits()
	f.Switch(false)
	if after := hits(); before+after > 0 || during < 120 || during > 280 || f.Happened()[chaos.Conflict] != during {
		t.Errorf("%d hits before, %d during, %d after, and %v counted", before, during, after, f.Happened())
	}
}
