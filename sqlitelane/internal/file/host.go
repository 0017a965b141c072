package file

import (
	"cmp"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/runlane/runlane-go"
)

// Processes share SQLite's locks and memory only within one kernel. So a small file next to the file, the claim, names
// the kernel that has it by an ID valid from boot to shutdown. A process of another kernel asks: it writes its own
// name as a question and waits. Processes that have the file open look every second and answer by restoring the old
// name. Without an answer, as after a loss of power, the asking kernel gets the file.
//
// The claim is opened for each read and replaced by renaming: both reach the server of a network file system. It is
// not synced: a loss of power only loses the claim of a kernel that has ended.

const (
	// ClaimEnding is the suffix of the claim's name.
	ClaimEnding = "-host"
	// claimLook is how often a process that has the file open reads the claim.
	claimLook = time.Second
	// claimPatience is how long a question waits for its answer, and claimPause how often it looks.
	claimPatience = 5 * time.Second
	claimPause    = 50 * time.Millisecond
)

// Host is a running kernel.
type Host struct {
	// ID changes with each boot. "" is unknown: then there is no claim.
	ID string
	// Name is for humans.
	Name string
}

// record is the content of the claim, one field per line.
type record struct {
	verb string // has or asks; "" if there is no claim
	Host
}

const (
	has  = "has"
	asks = "asks"
)

// claim is this process's part in its kernel's claim. nil claims nothing.
type claim struct {
	path  string // of the file
	host  Host
	fresh bool // this process created it

	mu     sync.Mutex
	looked time.Time // wall clock of the last read, which continues while the machine sleeps
	lost   error     // set once another kernel has the file
	stop   chan struct{}
	ended  chan struct{}
}

// takeClaim claims the file for this kernel. It refuses a file that another kernel has.
func takeClaim(path string, o *Options) (*claim, error) {
	hostOf := o.Host
	if hostOf == nil {
		hostOf = systemHost
	}
	host := hostOf()
	if o.VFS != "" || host.ID == "" {
		return nil, nil // a nil claim does nothing
	}
	c := &claim{path: path, host: host}
	found, err := c.read()
	switch {
	case err != nil:
		return nil, unusable(err, "let this user read and write it", "%s cannot be read", path+ClaimEnding)
	case found.verb == "":
		c.fresh = true
		_ = c.write(has) // on a full disk, opening the file reports it
	case found.verb == asks || found.ID != host.ID:
		err = c.ask(found)
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// ask waits for an answer. Another process of this kernel may be asking already, or have died asking: its question
// counts as this one's.
func (c *claim) ask(found record) error {
	asked, deadline := false, time.Time{}
	for ; ; time.Sleep(claimPause) {
		own := found.ID == c.host.ID
		switch {
		case own && found.verb == has:
			return nil
		case own && asked && time.Now().After(deadline):
			return c.put(has)
		case own && asked:
		case own: // asks
			asked, deadline = true, time.Now().Add(claimPatience)
		case asked && found.verb != "":
			return c.refused(found)
		default:
			if err := c.put(asks); err != nil {
				return err
			}
			c.fresh, asked, deadline = true, true, time.Now().Add(claimPatience)
		}
		var err error
		if found, err = c.read(); err != nil {
			return c.unwritable(err)
		}
	}
}

func (c *claim) refused(by record) error {
	return unusable(nil, "a file has one host: stop the programs on that one, and try again; a host that has ended "+
		"keeps nothing", "%s is open on another host, %s (this is %s); nothing was written",
		c.path, cmp.Or(by.Name, by.ID), cmp.Or(c.host.Name, c.host.ID))
}

func (c *claim) put(verb string) error {
	if err := c.write(verb); err != nil {
		return c.unwritable(err)
	}
	return nil
}

func (c *claim) unwritable(cause error) error {
	return unusable(cause, "let this user write it and the folder, make room, or remove it once no other host uses "+
		"the file", "%s names another host, and cannot be replaced", c.path+ClaimEnding)
}

// read reads the claim. A torn claim counts as none.
func (c *claim) read() (record, error) {
	text, err := os.ReadFile(c.path + ClaimEnding)
	if errors.Is(err, fs.ErrNotExist) {
		return record{}, nil
	}
	if err != nil {
		return record{}, err
	}
	lines := strings.Split(string(text), "\n")
	if len(lines) < 3 || !slices.Contains([]string{has, asks}, lines[0]) || lines[1] == "" {
		return record{}, nil
	}
	return record{lines[0], Host{ID: lines[1], Name: lines[2]}}, nil
}

// write replaces the claim in one step. It has the mode and owner of the file.
func (c *claim) write(verb string) error {
	draft := c.path + ClaimEnding + "." + rand.Text()[:12]
	f, err := os.OpenFile(draft, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if info, err := os.Stat(c.path); err == nil {
		_ = f.Chmod(info.Mode().Perm())
		keepOwner(f, info)
	}
	_, err = f.WriteString(verb + "\n" + c.host.ID + "\n" + c.host.Name + "\n")
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(draft, c.path+ClaimEnding)
	}
	if err != nil {
		return errors.Join(err, os.Remove(draft))
	}
	return nil
}

func (c *claim) watch() {
	if c == nil {
		return
	}
	c.stop, c.ended = make(chan struct{}), make(chan struct{})
	go func() { // ends with the claim
		defer close(c.ended)
		tick := time.NewTicker(claimLook)
		defer tick.Stop()
		for {
			select {
			case <-c.stop:
				return
			case <-tick.C:
				_ = c.judge()
			}
		}
	}()
}

// judge reads the claim at most once a second. Once another kernel has the file, it refuses until the file is opened
// again.
func (c *claim) judge() error {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now().Round(0)
	if since := now.Sub(c.looked); c.lost != nil || since >= 0 && since < claimLook {
		return c.lost
	}
	found, err := c.read()
	if err != nil {
		return nil // unknown; the next look may succeed
	}
	c.looked = now
	switch {
	case found.verb == has && found.ID == c.host.ID:
	case found.verb == has:
		c.lost = &runlane.Error{
			Code: runlane.ErrStorageUnavailable,
			Message: c.path + " was opened on another host, " + cmp.Or(found.Name, found.ID) +
				", while this program used it",
			Hint: "a file has one host: stop the programs on one of them, look at the file with \"runlane doctor\", " +
				"and start this program again",
			Meta: map[string]string{outcome: notCommitted},
		}
	default:
		_ = c.write(has) // the next look tries again
	}
	return c.lost
}

// end ends the claim. The kernel's last process to close the file removes it, because the log is gone.
func (c *claim) end(opened bool) {
	if c == nil {
		return
	}
	if c.stop != nil {
		close(c.stop)
		<-c.ended
	}
	found, err := c.read()
	if err != nil || found.ID != c.host.ID {
		return
	}
	if _, err := os.Stat(c.path + logEnding); !opened && c.fresh || errors.Is(err, fs.ErrNotExist) {
		_ = os.Remove(c.path + ClaimEnding) // if it stays, another host waits five seconds
	}
}
