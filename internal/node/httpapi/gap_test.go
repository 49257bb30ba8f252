// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"bytes"
	"errors"
	"io"
	"testing"
)

// EC-16: what was printed before somebody was joined with a container is what its log has before the first that they are streamed.
func TestBefore(t *testing.T) {
	for name, c := range map[string]struct {
		log, first, want string
		found            bool
	}{
		"nothing was missed":           {"there\n", "there\n", "", true},
		"a line was missed":            {"hi\nthere\n", "there\n", "hi\n", true},
		"on a terminal":                {"hi\nthere\n", "there\r\n", "hi\n", true},
		"more came meanwhile":          {"hi\nthere\nand more\n", "there\n", "hi\n", true},
		"two lines at once":            {"a\nb\nc\n", "b\nc\n", "a\n", true},
		"a line and a part of one":     {"a\nb\n", "b\n$ ", "a\n", true},
		"the log is not there yet":     {"hi\n", "there\n", "", false},
		"the log is empty":             {"", "there\n", "", false},
		"a prompt":                     {"welcome\n", "$ ", "welcome\n", true},
		"a part of a line":             {"hi\nthere\n", "the", "hi\n", true},
		"the same again":               {"y\ny\ny\n", "y\n", "y\ny\n", true},
		"a prompt, and nothing before": {"", "$ ", "", true},
	} {
		got, found := before([]byte(c.log), []byte(c.first))
		if string(got) != c.want || found != c.found {
			t.Errorf("%s: %q, %v", name, got, found)
		}
	}
}

// EC-16: it is written once, before the first bytes, in a terminal's way where there is one; a log that comes later than the stream is waited
// for, and one that cannot be read holds nothing up.
func TestJoining(t *testing.T) {
	var out bytes.Buffer
	reads := 0
	j := &joining{to: &out, rest: terminalLines{&out}, log: func(to io.Writer) error {
		reads++
		text := "hi\n"
		if reads > 2 {
			text += "there\n"
		}
		_, err := io.WriteString(to, text)
		return err
	}}
	for _, text := range []string{"there\r\n", "more\r\n"} {
		if n, err := io.WriteString(j, text); err != nil || n != len(text) {
			t.Fatal(n, err)
		}
	}
	if out.String() != "hi\r\nthere\r\nmore\r\n" || reads != 3 || j.n.Load() != 13 {
		t.Errorf("%q after %d reads, %d bytes", out.String(), reads, j.n.Load())
	}
	out.Reset()
	j = &joining{to: &out, rest: &out, log: func(io.Writer) error { return errors.New("it is away") }}
	if _, err := io.WriteString(j, "there\n"); err != nil || out.String() != "there\n" {
		t.Errorf("%q, %v", out.String(), err)
	}
	broken := &joining{to: &out, rest: writerFunc(func([]byte) (int, error) { return 0, errors.New("the client is gone") }),
		log: func(to io.Writer) error { _, err := io.WriteString(to, "hi\nthere\n"); return err }}
	if _, err := io.WriteString(broken, "there\n"); err == nil {
		t.Error("a client that is gone is written to")
	}
}

// FuzzBefore: what is missed is a beginning of the log, in whole lines.
func FuzzBefore(f *testing.F) {
	f.Add([]byte("hi\nthere\n"), []byte("there\r\n"))
	f.Add([]byte("y\n"), []byte("\n"))
	f.Fuzz(func(t *testing.T, log, first []byte) {
		if gap, _ := before(log, first); !bytes.HasPrefix(log, gap) {
			t.Errorf("%q of %q before %q", gap, log, first)
		}
	})
}
