package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/runlane/runlane-go/core"
)

// A task with a schema is triggered by a form of its properties; what is left empty is left out, and a number keeps its digits.
func TestTrigger_ByTheFieldsOfASchema(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.has(s.get(http.StatusOK, "/trigger"), `href="/trigger?task=mail.invite"`)
	s.has(s.get(http.StatusOK, "/trigger?task=mail.invite&as=json"), `<option value="mail.invite" selected>`, "<textarea")
	form := s.get(http.StatusOK, "/trigger?task=mail.invite")
	s.has(form, `name="field:to"`, "Address", "Who is invited", `type="email"`, `value="1"`, "<option value=\"&#34;team&#34;\">team</option>",
		`<option value="true">true</option>`, "anything (may be left out)", "&gt;&lt;script&gt;")
	if strings.Contains(form, `"><script>`) || strings.Index(form, "field:to") > strings.Index(form, "field:seats") {
		t.Error("the order of the properties, or what is not escaped")
	}
	fields := func(more ...string) url.Values {
		v := url.Values{"task": {"mail.invite"}, "as": {"fields"}}
		for i := 0; i < len(more); i += 2 {
			v.Set("field:"+more[i], more[i+1])
		}
		return v
	}
	trigger := func(key string, more ...string) string {
		v := fields(more...)
		v.Set("key", key)
		s.post(http.StatusOK, "/trigger", v)
		run, err := s.Runs().FindCurrent(t.Context(), "mail.invite", key)
		if err != nil {
			t.Fatal(err)
		}
		return string(run.Payload)
	}
	for key, c := range map[string]struct {
		more []string
		want string
	}{
		"few":  {[]string{"to", `ada"<b>`, "seats", "12345678901234567890.10"}, `{"to":"ada\"\u003cb\u003e","seats":12345678901234567890.10}`},
		"all":  {[]string{"to", "a", "seats", "1", "plan", "3", "trial", "false", "labels", `["x"]`, "anything", "null", `"><script>`, "s"}, `{"to":"a","seats":1,"plan":3,"trial":false,"labels":["x"],"anything":null,"\"\u003e\u003cscript\u003e":"s"}`},
		"none": {nil, `{}`}, // this task has no check
	} {
		if got := trigger(key, c.more...); got != c.want {
			t.Errorf("%s: %s, want %s", key, got, c.want)
		}
	}
	for _, c := range [][3]string{
		{"seats", "many", "seats is not JSON: many"},
		{"seats", `"1"`, "seats is not a number"},
		{"plan", "gold", "plan is not one of its values"},
		{"trial", "yes", "trial is not one of its values"},
		{"labels", "[", "labels is not JSON"},
	} {
		page := s.post(http.StatusBadRequest, "/trigger", fields("to", "kept@example.com", c[0], c[1]))
		s.has(page, c[2], `value="kept@example.com"`)
		if label := `for="field-`; !strings.HasPrefix(page[strings.Index(page, c[2])-len(`<p class="bad" role="alert">`):], `<p class="bad"`) || !strings.Contains(page, label) {
			t.Errorf("the error is not in the form: %s", page)
		}
	}
	s.has(s.post(http.StatusBadRequest, "/trigger", url.Values{"task": {"mail.welcome"}, "payload": {`{"to": ada}`}, "key": {"card-9"}}),
		`<p class="bad" role="alert">this is not JSON: {&#34;to&#34;: ada}`, "\n{&#34;to&#34;: ada}</textarea>", `value="card-9"`, `<option value="mail.welcome" selected>`)
	answer := url.Values{"signal": {"approved"}, "body": {"yes, {"}}
	s.has(s.post(http.StatusBadRequest, "/runs/"+string(s.Asking)+"/signal", answer), "this is not JSON", "\nyes, {</textarea>", "Refund 40 euros?", `data-live=""`)
	stale := fields("to", "ada", "gone", "")
	s.has(s.post(http.StatusBadRequest, "/trigger", stale), "has no gone any more")
	stale.Set("task", "mail.welcome") // whose schema is not known
	s.has(s.post(http.StatusBadRequest, "/trigger", stale), "any more")
	made, err := s.Runs().List(t.Context(), &core.ListOptions{RunFilter: core.RunFilter{TaskID: "mail.invite"}})
	if err != nil || len(made.Items) != 3 {
		t.Errorf("a refused form made a run: %d, %v", len(made.Items), err)
	}
}
