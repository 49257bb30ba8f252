// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wherryproject/wherry/internal/audit"
	"github.com/wherryproject/wherry/internal/audit/trail"
)

// auditDir is a data folder with an audit log.
func auditDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	path := audit.DefaultPath(dir)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	text := ""
	for _, e := range []string{
		`"auditID":"1","verb":"create","user":{"username":"jane"},"objectRef":{"resource":"pods","namespace":"default","name":"web"},"responseStatus":{"code":201},"requestReceivedTimestamp":"2026-03-04T12:00:00.000000Z"`,
		`"auditID":"2","verb":"create","user":{"username":"joe"},"objectRef":{"resource":"pods","namespace":"default","name":"web","subresource":"exec"},"responseStatus":{"code":403,"reason":"Forbidden","message":"not joe"},"requestReceivedTimestamp":"2026-03-04T12:00:01.000000Z","sourceIPs":["10.0.0.9"],"userAgent":"kubectl/v1.37 (linux)"`,
		`"auditID":"3","verb":"delete","user":{"username":"jane"},"objectRef":{"resource":"secrets","namespace":"shop","name":"db"},"responseStatus":{"code":200},"requestReceivedTimestamp":"2026-03-04T12:00:02.000000Z"`,
		`"auditID":"4","verb":"delete","user":{"username":"jane"},"objectRef":{"resource":"nodes","name":"n1"},"responseStatus":{"code":200},"requestReceivedTimestamp":"2026-03-04T12:00:03.000000Z"`,
	} {
		text += `{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","stage":"ResponseComplete",` + e + "}\n"
	}
	if err := os.WriteFile(path, []byte(text+"rubbish\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestAuditCommand(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	dir := auditDir(t)
	for name, tc := range map[string]struct {
		args []string
		code int
		want string // standard output, with runs of spaces as one
		err  string
	}{
		"all": {nil, 0, `TIME USER NAMESPACE RESULT WHAT
2026-03-04 12:00:00 jane default 201 create pods/web
2026-03-04 12:00:01 joe default 403 Forbidden exec in pods/web
2026-03-04 12:00:02 jane shop 200 delete secrets/db
2026-03-04 12:00:03 jane - 200 delete nodes/n1`, "skipped 1 lines of the log that cannot be read"},
		"a pod": {[]string{"web"}, 0, `TIME USER NAMESPACE RESULT WHAT
2026-03-04 12:00:00 jane default 201 create pods/web
2026-03-04 12:00:01 joe default 403 Forbidden exec in pods/web`, ""},
		"wide": {[]string{"pod/web", "--refused", "-o", "wide"}, 0, `TIME USER NAMESPACE RESULT FROM AGENT AUDIT-ID WHAT MESSAGE
2026-03-04 12:00:01 joe default 403 Forbidden 10.0.0.9 kubectl/v1.37 2 exec in pods/web not joe`, ""},
		"of another namespace": {[]string{"secret", "db", "-n", "shop"}, 0, "TIME USER NAMESPACE RESULT WHAT\n2026-03-04 12:00:02 jane shop 200 delete secrets/db", ""},
		"not of this one":      {[]string{"secret/db"}, 0, "", "No matching requests found."},
		"wherever":             {[]string{"secret/db", "-A"}, 0, "TIME USER NAMESPACE RESULT WHAT\n2026-03-04 12:00:02 jane shop 200 delete secrets/db", ""},
		"a kind":               {[]string{"secrets"}, 0, "TIME USER NAMESPACE RESULT WHAT\n2026-03-04 12:00:02 jane shop 200 delete secrets/db", ""},
		"a node":               {[]string{"node/n1"}, 0, "TIME USER NAMESPACE RESULT WHAT\n2026-03-04 12:00:03 jane - 200 delete nodes/n1", ""},
		"last":                 {[]string{"--tail", "1"}, 0, "TIME USER NAMESPACE RESULT WHAT\n2026-03-04 12:00:03 jane - 200 delete nodes/n1", ""},
		"who did what":         {[]string{"--user", "jane", "--verb", "create,get"}, 0, "TIME USER NAMESPACE RESULT WHAT\n2026-03-04 12:00:00 jane default 201 create pods/web", ""},
		"since":                {[]string{"--since-time", "2026-03-04T12:00:03Z"}, 0, "TIME USER NAMESPACE RESULT WHAT\n2026-03-04 12:00:03 jane - 200 delete nodes/n1", ""},
		"long ago":             {[]string{"--since", "1s"}, 0, "", "No matching requests found."},

		"output":      {[]string{"-o", "xml"}, 2, "", "-o xml: use wide, json or yaml"},
		"two times":   {[]string{"--since", "1h", "--since-time", "2026-03-04T12:00:03Z"}, 2, "", "give one of them"},
		"no time":     {[]string{"--since-time", "noon"}, 2, "", "is not a time such as"},
		"tail":        {[]string{"--tail", "-2"}, 2, "", "give a number of requests"},
		"tail json":   {[]string{"--tail", "2", "-o", "json"}, 2, "", "--tail only works with the table"},
		"negative":    {[]string{"--since", "-1h"}, 2, "", "give a duration above zero"},
		"both":        {[]string{"-n", "a", "-A"}, 2, "", "exclude each other"},
		"no object":   {[]string{"pod/"}, 2, "", "give POD or TYPE/NAME"},
		"two objects": {[]string{"pod/a", "pod/b"}, 2, "", "give TYPE/NAME or TYPE NAME"},
		"three":       {[]string{"a", "b", "c"}, 2, "", `unexpected argument "c"`},
		"no log":      {[]string{"--audit-log-path", dir + "/none/audit.log"}, 1, "", "audit log " + dir + "/none/audit.log does not exist"},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errs bytes.Buffer
			code := run(Terminal{Out: &out, Err: &errs}, append([]string{"audit", "--data-dir", dir, "--utc"}, tc.args...))
			var lines []string
			for line := range strings.Lines(out.String()) {
				lines = append(lines, strings.Join(strings.Fields(line), " "))
			}
			if got := strings.Join(lines, "\n"); code != tc.code || got != tc.want || !strings.Contains(errs.String(), tc.err) {
				t.Errorf("code %d\n%s\n%s\nwant %d\n%s\n%s", code, got, errs.String(), tc.code, tc.want, tc.err)
			}
		})
	}
	t.Run("json", func(t *testing.T) {
		var out bytes.Buffer
		if code := run(Terminal{Out: &out, Err: &out}, []string{"audit", "--data-dir", dir, "web", "-o", "json"}); code != 0 {
			t.Fatal(out.String())
		}
		in := json.NewDecoder(&out)
		for _, want := range []string{"1", "2"} {
			var e trail.Event
			if err := in.Decode(&e); err != nil || string(e.AuditID) != want {
				t.Errorf("%v %+v", err, e)
			}
		}
	})
	t.Run("yaml", func(t *testing.T) {
		var out bytes.Buffer
		if code := run(Terminal{Out: &out, Err: &out}, []string{"audit", "--data-dir", dir, "web", "-o", "yaml"}); code != 0 || strings.Count(out.String(), "---\napiVersion: audit.k8s.io/v1\nauditID:") != 2 {
			t.Error(out.String())
		}
	})
}

// A log that may not be read says so, and what to do.
func TestAuditNotRoot(t *testing.T) {
	f := &auditCommand{}
	f.DataDir = "/data"
	if err := f.explain(os.ErrPermission); !strings.Contains(err.Error(), "only root can read the audit log /data/audit/audit.log: run it with sudo") {
		t.Error(err)
	}
	other := errors.New("other")
	if err := f.explain(other); !errors.Is(err, other) {
		t.Error(err)
	}
}

// The filter's time is counted from now.
func TestAuditSince(t *testing.T) {
	f := &auditCommand{since: time.Hour, tail: -1}
	now := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	if got, err := f.filter(nil, now); err != nil || !got.Since.Equal(now.Add(-time.Hour)) {
		t.Errorf("%+v %v", got, err)
	}
}
