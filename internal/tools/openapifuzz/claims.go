package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// printClaims claims the runs of the queue claims until none is left, each for as long as a lease can last.
func printClaims(ctx context.Context, to io.Writer, address, token string) error {
	fmt.Fprint(to, "\n[dictionaries.claims]\nvalues = [\n")
	for range toClaim {
		claim, err := claimOne(ctx, address, token)
		if err != nil {
			return err
		}
		fmt.Fprintf(to, "  %q,\n", claim)
	}
	_, err := fmt.Fprintln(to, "]")
	return err
}

// claimOne answers with the token of a claim.
func claimOne(ctx context.Context, address, token string) (string, error) {
	asked, err := json.Marshal(map[string]any{
		"queues": []string{string(claims)},
		"lease":  "15m",
		"wait":   "10s",
	})
	if err != nil {
		return "", err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address+"/v1/work/claim", bytes.NewReader(asked))
	if err != nil {
		return "", err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return "", err
	}
	var got struct{ Token string }
	if err := json.Unmarshal(body, &got); err != nil || got.Token == "" {
		return "", fmt.Errorf("no claim: %s: %.200s", answer.Status, body)
	}
	return got.Token, nil
}
