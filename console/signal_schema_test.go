package console_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/memlane"
)

type decision struct {
	Approved bool    `json:"approved"`
	Note     *string `json:"note,omitempty"`
}

// A signal with a schema is answered by a form of its fields, which is empty; what does not fit is shown again, and nothing is sent.
func TestSignal_ByTheFieldsOfItsSchema(t *testing.T) {
	t.Parallel()
	task := runlane.NewTask[string]("order.refund", nil)
	schemas := map[string]json.RawMessage{
		"fields": runlane.SchemaOf[decision](), "one": runlane.SchemaOf[bool](), "list": runlane.SchemaOf[[]int8](),
	}
	s := siteOf(t, programOn(t, memlane.New(), task.Handle(func(ctx context.Context, a *runlane.Attempt, which string) error {
		_, err := runlane.NewSignal[json.RawMessage](which).WithSchema(schemas[which]).Wait(ctx, a, nil)
		return err
	})), nil)
	for which, c := range map[string]struct {
		page, left []string // what the form has, and has not
		refused    [][]string
		told       string // why the last of them is refused
		sent       []string
		body       string
	}{
		"fields": {
			[]string{`name="field:approved"`, `<option value="">–</option><option value="true">true</option>`, `id="signal-fields-1" name="field:note"`, `note (may be left out)`},
			[]string{"selected", "<textarea"},
			[][]string{{"as", "fields"}, {"as", "fields", "field:approved", "yes"}, {"body", `{"note":1}`}},
			`has no &#34;approved&#34;`,
			[]string{"as", "fields", "field:approved", "false", "field:note", "no"}, `{"approved":false,"note":"no"}`,
		},
		"one": {
			[]string{`name="field:Body"`, `<option value="false">false</option>`}, []string{"selected", "<textarea"},
			[][]string{{"as", "fields", "field:other", "1"}, {"as", "fields"}},
			"nothing was given", []string{"as", "fields", "field:Body", "true"}, `true`,
		},
		"list": {
			[]string{"JSON that fits the schema of the wait"}, []string{"field:"},
			[][]string{{"body", `true`}, {"body", `[200]`}}, "/0 is more than 127", []string{"body", `[7]`}, `[7]`,
		},
	} {
		made, err := s.RunNow(t.Context(), task.With(which), nil)
		if err != nil {
			t.Fatal(err)
		}
		id := made.Run.ID
		at := "/runs/" + url.PathEscape(string(id))
		page := s.get(http.StatusOK, at)
		s.has(page, c.page...)
		s.hasNot(page, c.left...)
		for _, fields := range c.refused {
			page = s.post(http.StatusBadRequest, at+"/signal", s.seen(id, append(fields, "signal", which)...))
		}
		s.has(page, c.told)
		if now := s.status(id); now != runlane.StatusReleased {
			t.Errorf("%s: %s", which, now)
		}
		s.post(http.StatusOK, at+"/signal", s.seen(id, append(c.sent, "signal", which)...))
		if _, err := s.ExecuteNext(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		steps, err := s.Runs().Steps(t.Context(), id)
		if err != nil || len(steps) != 1 || !strings.Contains(string(steps[0].Result), `"body":`+c.body) {
			t.Errorf("%s: %+v, %v", which, steps, err)
		}
	}
}
