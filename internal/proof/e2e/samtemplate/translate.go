package samtemplate

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// Translate gives a template to AWS's own translator, as CloudFormation does, once for each set of parameters over the
// defaults; the parameter "" is another template's path. The script is scripts/validate/translate.py, and the Python
// on the path has SAM's tools.
func Translate(ctx context.Context, script, template string, sets []map[string]string) ([]*Template, error) {
	folder, err := os.MkdirTemp("", "runlane-translate-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	target := filepath.Join(folder, "translated.json")
	arguments := []string{script, template, target}
	for i, parameters := range sets {
		if i > 0 {
			arguments = append(arguments, "--")
		}
		for _, name := range slices.Sorted(maps.Keys(parameters)) {
			arguments = append(arguments, name+"="+parameters[name])
		}
	}
	if out, err := exec.CommandContext(ctx, "python", arguments...).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("translate: %w: %s", err, out)
	}
	text, err := os.ReadFile(target)
	if err != nil {
		return nil, err
	}
	list := make([]json.RawMessage, 1)
	if len(sets) > 1 {
		err = json.Unmarshal(text, &list)
	} else {
		list[0] = text
	}
	if err != nil || len(list) != max(1, len(sets)) {
		return nil, fmt.Errorf("translate: %d templates of %d: %w", len(list), len(sets), err)
	}
	templates := make([]*Template, len(list))
	for i, one := range list {
		if templates[i], err = Parse(one); err != nil {
			return nil, err
		}
	}
	return templates, nil
}
