package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const root = "../../.."

// The archive is the program of the newest recording, or of the one before. A recording that belongs to no release may be made anew, with
// another sum: then the archive stays the program of its earlier form, which is what an upgrade comes from. One that was released has one
// sum for ever. To keep another program: go run ./internal/proof/upgrade -keep COMMIT.
func TestArchive_IsThatOfTheLastRecordings(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(root, originFile))
	if err != nil {
		t.Fatal(err)
	}
	said := strings.Fields(string(text))
	if len(said) != 5 || said[0] != "commit" || said[2] != "recording" {
		t.Fatalf("%s says %q", originFile, text)
	}
	var files []file
	names, err := filepath.Glob(filepath.Join(root, recordings, "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		below, err := filepath.Rel(root, name)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file{filepath.ToSlash(below), text})
	}
	all := recordingsOf(files)
	last := all[max(0, len(all)-2):]
	named := slices.ContainsFunc(last, func(r recording) bool { return r.name == said[3] })
	if !named || isReleased(t, said[3]) && !slices.Contains(last, recording{said[3], said[4]}) {
		t.Errorf("the old program stores recording %s with the sum %s, and the last ones are %v", said[3], said[4], last)
	}
	wantCommitted(t, said[1])
}

// isReleased says whether a recording belongs to a release.
func isReleased(t *testing.T, name string) bool {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, recordings, "released"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(strings.Split(string(text), "\n"), func(line string) bool { return strings.HasPrefix(line, name+" ") })
}

// wantCommitted compares the archive with its commit, where the checkout has it: one without history, as CI's, has not.
func wantCommitted(t *testing.T, commit string) {
	t.Helper()
	if exec.CommandContext(t.Context(), "git", "-C", root, "cat-file", "-e", commit+"^{commit}").Run() != nil {
		t.Logf("the history of this checkout has no %s", commit)
		return
	}
	committed, err := committed(t.Context(), root, commit)
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string][]byte{}
	for _, f := range committed {
		texts[f.name] = f.text
	}
	archive, err := os.ReadFile(filepath.Join(root, archiveFile))
	if err != nil {
		t.Fatal(err)
	}
	files, err := unpack(archive)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !bytes.Equal(f.text, texts[f.name]) {
			t.Errorf("%s is not that of commit %s", f.name, commit)
		}
	}
	again, err := pack(files)
	if err != nil || !bytes.Equal(again, archive) {
		t.Errorf("packed again, the archive has %d bytes and not %d, or others: %v", len(again), len(archive), err)
	}
}

func TestUnpack_RefusesWhatLiesOutside(t *testing.T) {
	t.Parallel()
	archive, err := pack([]file{{"../escaped.go", []byte("package main")}})
	if err != nil {
		t.Fatal(err)
	}
	if files, err := unpack(archive); err == nil || len(files) > 0 {
		t.Errorf("%v, %v", files, err)
	}
}

func TestRecordingsOf_AreInTheOrderOfTheirNumbers(t *testing.T) {
	t.Parallel()
	var files []file
	for _, name := range []string{"2", "1.10", "1", "1.2"} {
		files = append(files, file{recordings + "/" + name + "/shapes", []byte(name)})
	}
	var got []string
	for _, r := range recordingsOf(append(files, file{recordings + "/released", nil})) {
		got = append(got, r.name)
	}
	if !slices.Equal(got, []string{"1", "1.2", "1.10", "2"}) {
		t.Errorf("%v", got)
	}
}
