package core

import (
	"encoding/base64"
	"fmt"
	"os"
	"strings"
	"unicode"

	"github.com/runlane/runlane-go"
)

// TokenKeysVariable holds keys for [Options].TokenKeys, as [TokenKeysFromEnv] reads them.
const TokenKeysVariable = "RUNLANE_TOKEN_KEYS"

const minTokenKeyBytes = 32

// TokenKeysFromEnv reads keys for [Options].TokenKeys from RUNLANE_TOKEN_KEYS: at least 32 random bytes each in base64
// (openssl rand -base64 32), separated by commas or white space. The first key signs, each verifies. Unset means no
// keys. An unreadable or short key is runlane.ErrConfigurationInvalid; the error has its number and never its text.
func TokenKeysFromEnv() ([][]byte, error) { return parseTokenKeys(os.Getenv(TokenKeysVariable)) }

func parseTokenKeys(text string) ([][]byte, error) {
	var keys [][]byte
	between := func(r rune) bool { return r == ',' || unicode.IsSpace(r) }
	for entry := range strings.FieldsFuncSeq(text, between) {
		key, err := base64.StdEncoding.DecodeString(entry)
		if err != nil { // err would quote only a position
			return nil, tokenKeyFault("is not base64", len(keys))
		}
		if len(key) < minTokenKeyBytes {
			return nil, tokenKeyFault(fmt.Sprintf("has %d bytes", len(key)), len(keys))
		}
		keys = append(keys, key)
	}
	return keys, nil
}

func tokenKeyFault(fault string, index int) error {
	return &runlane.Error{
		Code:    runlane.ErrConfigurationInvalid,
		Message: fmt.Sprintf("key %d of %s %s", index+1, TokenKeysVariable, fault),
		Hint: fmt.Sprintf(
			"use at least %d random bytes in base64, with commas between keys: openssl rand -base64 %[1]d",
			minTokenKeyBytes,
		),
	}
}

func checkTokenKeys(keys [][]byte) error {
	for i, key := range keys {
		if len(key) < minTokenKeyBytes {
			return invalidOption(
				fmt.Sprintf("use keys of at least %d random bytes", minTokenKeyBytes),
				"Options.TokenKeys[%d] has %d bytes", i, len(key))
		}
	}
	return nil
}

func (rt *Runtime) requireTokenKeys() error {
	if len(rt.tokenKeys) > 0 {
		return nil
	}
	return &runlane.Error{
		Code:    runlane.ErrCapabilityUnsupported,
		Message: "this runtime has no keys for answer tokens",
		Hint:    "set core.Options.TokenKeys, with core.TokenKeysFromEnv from " + TokenKeysVariable,
	}
}
