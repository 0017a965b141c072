package clienttypes

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "write the types of the clients")

// The types of the clients are those of the description.
func TestTypes_AreOfTheDescription(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..", "..")
	text, err := os.ReadFile(filepath.Join(root, description))
	if err != nil {
		t.Fatal(err)
	}
	d, err := read(text)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{typescript: d.typeScript(), python: d.python()} {
		path = filepath.Join(root, path)
		if *update {
			if err := os.WriteFile(path, []byte(want), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("%s is not of the description (%v): %s", path, err, head)
		}
	}
}
