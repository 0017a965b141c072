package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// The old program's sources are a file of this repository: a checkout may have no history, and no version is published
// that a module could require. Why it is not a patch or a binary: docs/internals/decisions/0037.
const (
	programFolder = "internal/proof/upgrade/program"
	archiveFile   = "internal/proof/upgrade/testdata/old.tar.gz"
	originFile    = "internal/proof/upgrade/testdata/origin"
	recordings    = "internal/proof/formats/testdata"
)

// Functions are built with this tag, and the command line without: awslane's parts for the two differ.
const functionTag = "lambda.norpc"

// always are the files that go into an archive beside the sources of packages.
var always = []string{"go.mod", "go.sum", "template.yaml"}

// file is one of an archive.
type file struct {
	name string // with slashes
	text []byte
}

// pack makes an archive, the same bytes from the same files.
func pack(files []file) ([]byte, error) {
	var out bytes.Buffer
	compressed, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	w := tar.NewWriter(compressed)
	slices.SortFunc(files, func(a, b file) int { return cmp.Compare(a.name, b.name) })
	for _, f := range files {
		header := &tar.Header{
			Name:    f.name,
			Mode:    0o644,
			Size:    int64(len(f.text)),
			Format:  tar.FormatUSTAR,
			ModTime: time.Unix(0, 0),
		}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.text); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(w.Close(), compressed.Close()); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// unpack lists the files of an archive.
func unpack(archive []byte) (files []file, err error) {
	plain, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return nil, err
	}
	for r := tar.NewReader(plain); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		if !filepath.IsLocal(header.Name) || header.Typeflag != tar.TypeReg {
			return nil, fmt.Errorf("the archive has %q, which is no file in its folder", header.Name)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			return nil, err
		}
		files = append(files, file{header.Name, text})
	}
}

// extract writes the old sources into a folder, with today's program of the test among them.
func extract(root, folder string) error {
	archive, err := os.ReadFile(filepath.Join(root, archiveFile))
	if err != nil {
		return err
	}
	files, err := unpack(archive)
	if err != nil {
		return err
	}
	program, err := programFiles(root)
	if err != nil {
		return err
	}
	return writeAll(folder, append(files, program...))
}

func programFiles(root string) (files []file, err error) {
	names, err := fs.Glob(os.DirFS(root), programFolder+"/*.go")
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return nil, err
		}
		files = append(files, file{name, text})
	}
	return files, err
}

func writeAll(folder string, files []file) error {
	for _, f := range files {
		name := filepath.Join(folder, f.name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(name, f.text, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// keep makes the archive anew, of what the test's program needs of a commit.
func keep(ctx context.Context, root, commit string) error {
	full, err := output(ctx, root, "git", "rev-parse", commit+"^{commit}")
	if err != nil {
		return err
	}
	place, err := os.MkdirTemp("", "runlane-upgrade")
	if err != nil {
		return err
	}
	defer os.RemoveAll(place)
	files, err := committed(ctx, root, strings.TrimSpace(string(full)))
	if err != nil {
		return err
	}
	program, err := programFiles(root)
	if err != nil {
		return err
	}
	if err := writeAll(place, append(slices.Clone(files), program...)); err != nil {
		return err
	}
	wanted := always
	for _, tags := range []string{"", functionTag} {
		arguments := []string{"list", "-tags", tags, "-deps", "-f", neededFiles, "./" + programFolder}
		needed, err := output(ctx, place, "go", arguments...)
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(needed)) {
			name, err := filepath.Rel(place, strings.TrimSpace(line))
			if err != nil {
				return err
			}
			wanted = append(wanted, filepath.ToSlash(name))
		}
	}
	kept := slices.DeleteFunc(slices.Clone(files), func(f file) bool { return !slices.Contains(wanted, f.name) })
	archive, err := pack(kept)
	if err != nil {
		return err
	}
	recording, sum, err := recorded(files)
	if err != nil {
		return err
	}
	text := fmt.Sprintf("commit %srecording %s %s\n", full, recording, sum)
	return errors.Join(
		os.WriteFile(filepath.Join(root, archiveFile), archive, 0o600),
		os.WriteFile(filepath.Join(root, originFile), []byte(text), 0o600),
	)
}

// neededFiles names the files of a package of this module, those of every system.
const neededFiles = `{{if and .Module .Module.Main}}{{$dir := .Dir}}` +
	`{{range .GoFiles}}{{$dir}}/{{.}}` + "\n" + `{{end}}` +
	`{{range .IgnoredGoFiles}}{{$dir}}/{{.}}` + "\n" + `{{end}}` +
	`{{range .EmbedFiles}}{{$dir}}/{{.}}` + "\n" + `{{end}}{{end}}`

// committed are the files of a commit.
func committed(ctx context.Context, root, commit string) (files []file, err error) {
	archive, err := output(ctx, root, "git", "archive", "--format=tar", commit)
	if err != nil {
		return nil, err
	}
	for r := tar.NewReader(bytes.NewReader(archive)); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		if header.Typeflag != tar.TypeReg {
			continue
		}
		text, err := io.ReadAll(r)
		if err != nil {
			return nil, err
		}
		files = append(files, file{path.Clean(header.Name), text})
	}
}

func output(ctx context.Context, folder, name string, arguments ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, name, arguments...)
	command.Dir = folder
	out, err := command.Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		return nil, fmt.Errorf("%s %s: %w\n%s", name, arguments[0], err, failed.Stderr)
	}
	return out, err
}
