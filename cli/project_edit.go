package cli

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/aymanbagabas/go-udiff"
	"github.com/aymanbagabas/go-udiff/myers"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/cli/internal/samfile"
)

// templateFile is a project's description of its AWS resources.
const templateFile = "template.yaml"

// projectEdit changes files of the project in the folder of the call: all or none, after showing the difference.
type projectEdit struct {
	folder string
	before map[string]string // by name; new files have no entry
	after  map[string]string
	order  []string
}

type shownEdit struct {
	File string `json:"file"`
	Diff string `json:"diff"`
}

func (s *session) newProjectEdit() (*projectEdit, error) {
	folder, err := s.callFolder()
	if err != nil {
		return nil, err
	}
	return &projectEdit{folder: folder, before: map[string]string{}, after: map[string]string{}}, nil
}

// read returns a file as edited so far, or "" if it does not exist.
func (e *projectEdit) read(name string) (string, error) {
	if text, ok := e.after[name]; ok {
		return text, nil
	}
	text, err := os.ReadFile(filepath.Join(e.folder, name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if err == nil {
		e.before[name] = string(text)
	}
	return string(text), nil
}

func (e *projectEdit) template() (string, error) {
	text, err := e.read(templateFile)
	if err == nil && text == "" {
		return "", usagef(
			"go to a folder that \"runlane init\" wrote, or where such a template is",
			"there is no %s in %s", templateFile, e.folder,
		)
	}
	return text, err
}

func (e *projectEdit) write(name, text string) {
	if e.before[name] == text {
		return
	}
	if _, ok := e.after[name]; !ok {
		e.order = append(e.order, name)
	}
	e.after[name] = text
}

func (e *projectEdit) apply(ctx context.Context, s *session, dryRun, yes bool) error {
	for _, name := range e.order {
		diff, err := difference(name, e.before[name], e.after[name])
		if err != nil {
			return err
		}
		if s.json {
			if err := s.emit("edit", &shownEdit{File: name, Diff: diff}); err != nil {
				return err
			}
			continue
		}
		s.line("%s", strings.TrimSuffix(diff, "\n"))
	}
	if err := s.results.Flush(); err != nil {
		return err
	}
	if len(e.order) == 0 {
		s.note("nothing to do: it is there already")
		return nil
	}
	if dryRun {
		return nil
	}
	if err := s.confirm(ctx, yes, "write this to "+plural(len(e.order), "file", "files")+"?"); err != nil {
		return err
	}
	return e.save()
}

// difference returns the shortest line diff, so that an addition does not show unrelated lines as moved.
func difference(name, before, after string) (string, error) {
	// The library's other algorithms give up on large files and show most lines as removed.
	edits := myers.ComputeEdits(before, after) //nolint:staticcheck // see above
	return udiff.ToUnified(name, name, before, edits, udiff.DefaultContextLines)
}

// save writes all files under temporary names before it renames the first one.
func (e *projectEdit) save() error {
	staged := make([]string, 0, len(e.order))
	defer func() {
		for _, name := range staged {
			_ = os.Remove(name) // fails if it was renamed
		}
	}()
	for _, name := range e.order {
		target := filepath.Join(e.folder, name)
		if linked, err := filepath.EvalSymlinks(target); err == nil {
			target = linked
		}
		file, err := os.CreateTemp(filepath.Dir(target), "."+filepath.Base(name)+"-*")
		if err != nil {
			return unwritable(name, err)
		}
		staged = append(staged, file.Name())
		_, err = bytes.NewBufferString(e.after[name]).WriteTo(file)
		if err = errors.Join(err, file.Chmod(e.mode(name)), file.Close()); err != nil {
			return unwritable(name, err)
		}
	}
	for i, name := range e.order {
		place := filepath.Join(e.folder, name)
		if target, err := filepath.EvalSymlinks(place); err == nil { // keep links
			place = target
		}
		if err := os.Rename(staged[i], place); err != nil {
			return unwritable(name, err)
		}
	}
	return nil
}

// mode returns the mode of the existing file, or the default.
func (e *projectEdit) mode(name string) fs.FileMode {
	if info, err := os.Stat(filepath.Join(e.folder, name)); err == nil {
		return info.Mode().Perm()
	}
	return 0o644
}

// templateFault adds a hint to errors of package samfile.
func templateFault(err error) error {
	var missing *samfile.MissingError
	var taken *samfile.TakenError
	var kind *samfile.KindError
	switch {
	case errors.As(err, &missing):
		return &runlane.Error{
			Code: runlane.ErrConfigurationInvalid, Message: templateFile + ": " + missing.Error(),
			Hint: "add it by hand as docs/deploying.md describes, or begin with the template of \"runlane init\"",
		}
	case errors.As(err, &taken):
		return &runlane.Error{
			Code: runlane.ErrConfigurationInvalid, Message: templateFile + ": " + taken.Error(),
			Hint: "choose another name, or rename what is there",
		}
	case errors.As(err, &kind):
		return &runlane.Error{
			Code: runlane.ErrConfigurationInvalid, Message: templateFile + ": " + kind.Error(),
			Hint: "a queue of SQS keeps its kind: add one of another name, and let the tasks name that",
		}
	}
	return err
}
