package samtemplate

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Included turns a project's template into what the CDK construct includes: without the sections that stand for a whole
// stack, and without what its properties and its asset say.
func Included(text []byte) ([]byte, error) {
	template, err := bare(text)
	if err != nil {
		return nil, err
	}
	for _, section := range []string{"AWSTemplateFormatVersion", "Description", "Metadata", "Rules"} {
		delete(template, section)
	}
	without := func(section, name string) error {
		parts, _ := template[section].(map[string]any)
		if len(parts) == 0 {
			return fmt.Errorf("the template has no %s", section)
		}
		for _, part := range parts {
			if part, ok := part.(map[string]any); ok {
				delete(part, name)
			}
		}
		return nil
	}
	needless := map[string]string{"Parameters": "Description", "Resources": "Metadata", "Globals": "CodeUri"}
	for section, name := range needless {
		if err := without(section, name); err != nil {
			return nil, err
		}
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	err = encoder.Encode(template)
	return out.Bytes(), err
}
