// SPDX-License-Identifier: Apache-2.0

package options_test

import (
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/wherryproject/wherry/internal/cluster/debugapi/options"
	"github.com/wherryproject/wherry/internal/cluster/wire"
)

func codec(t testing.TB) runtime.ParameterCodec {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := options.Register(scheme); err != nil {
		t.Fatal(err)
	}
	return runtime.NewParameterCodec(scheme)
}

// sessioner are options of which a session comes.
type sessioner interface {
	runtime.Object
	Session(l options.Limits) (wire.Session, error)
}

func ask(t testing.TB, c runtime.ParameterCodec, o sessioner, query string) (wire.Session, error) {
	t.Helper()
	q, err := url.ParseQuery(query)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.DecodeParameters(q, options.GroupVersion(), o); err != nil {
		return wire.Session{}, err
	}
	return o.Session(options.DefaultLimits())
}

// What is asked for becomes what the agent is asked for. Proves DA-04.
func TestSessions(t *testing.T) {
	c := codec(t)
	for _, d := range []struct {
		o     sessioner
		query string
		want  wire.Session
	}{
		{&options.Shell{}, "stdout=true&container=web", wire.Session{As: wire.Shell, Container: "web", Stdout: true,
			Profile: "general", Seconds: 3600, Memory: 512 << 20, CPUs: 1}},
		{&options.Shell{},
			"stdin=true&stdout=true&stderr=true&tty=true&term=xterm&command=sh&command=-l&image=alpine&profile=netadmin&user=5:6&writable=true&ttl=90s&memory=64Mi&cpus=250m&timeout=3s", wire.Session{As: wire.Shell, Stdin: true, Stdout: true, TTY: true, Term: "xterm", Command: []string{"sh", "-l"},
				Image: "alpine", Profile: "netadmin", User: "5:6", Writable: true, Seconds: 90, Memory: 64 << 20,
				CPUs: 0.25}},
		{&options.Shell{}, "stdout=true&profile=restricted", wire.Session{As: wire.Shell, Stdout: true,
			Profile: "restricted", User: "65534:65534", Seconds: 3600, Memory: 512 << 20, CPUs: 1}},
		{&options.Exec{}, "stderr=true&image=busybox:1&command=ls&ttl=1500ms", wire.Session{As: wire.Exec, Stderr: true,
			Image: "busybox:1", Command: []string{"ls"}, Seconds: 2, Memory: 512 << 20, CPUs: 1}},
		{&options.Files{Container: "main"}, "path=/etc/hosts",
			wire.Session{As: wire.Files, Container: "main", Stdout: true,
				Stderr: true, Command: []string{"/bin/toolbox", "cp-pack", "--root", "/c/main", "/etc/hosts"},
				Seconds: 3600, Memory: 512 << 20, CPUs: 1}},
		{&options.Files{}, "path=--root&container=a&op=pack&total=true&follow=true&stdout=true", wire.Session{
			As: wire.Files, Container: "a", Stdout: true, Stderr: true, Seconds: 3600, Memory: 512 << 20, CPUs: 1,
			Command: []string{"/bin/toolbox", "cp-pack", "--root", "/c/a", "--total", "--follow", "/--root"}}},
		{&options.Files{}, "path=/tmp&container=a&op=unpack", wire.Session{As: wire.Files, Container: "a", Stdin: true,
			Stdout: true, Stderr: true, Writable: true, Seconds: 3600, Memory: 512 << 20, CPUs: 1,
			Command: []string{"/bin/toolbox", "cp-unpack", "--root", "/c/a", "/tmp"}}},
		{&options.Files{}, "path=/tmp&container=a&op=unpack&keep=ABCDEFGHIJKLMNOPQRSTUVWXYZ",
			wire.Session{As: wire.Files,
				Container: "a", Stdin: true, Stdout: true, Stderr: true, Writable: true, Seconds: 3600,
				Memory: 512 << 20, CPUs: 1, Command: []string{"/bin/toolbox", "cp-unpack", "--root", "/c/a", "--keep",
					"ABCDEFGHIJKLMNOPQRSTUVWXYZ", "/tmp"}}},
	} {
		if got, err := ask(t, c, d.o, d.query); err != nil || !reflect.DeepEqual(got, d.want) {
			t.Errorf("%T %s:\ngot  %+v, %v\nwant %+v", d.o, d.query, got, err, d.want)
		}
	}
}

// What is not known, cannot be read or is too much is refused whole, in words that say what is wrong. Proves DA-04.
func TestRefusals(t *testing.T) {
	c := codec(t)
	for _, d := range []struct {
		o           sessioner
		query, want string
	}{
		{&options.Shell{}, "", "at least one of stdin, stdout, stderr"},
		{&options.Shell{}, "stdout=maybe", "query parameter stdout"},
		{&options.Shell{}, "stdout=true&privileged=true", `"privileged" is unknown`},
		{&options.Shell{}, "stdout=true&profile=root", "choose one of general"},
		{&options.Shell{}, "stdout=true&profile=host", "choose one of general"},
		{&options.Shell{}, "stdout=true&profile=restricted&user=0", "is root"},
		{&options.Shell{}, "stdout=true&profile=restricted&user=0:5", "is root"},
		{&options.Shell{}, "stdout=true&user=jane", "user: "},
		{&options.Shell{}, "stdout=true&ttl=9h", "more than this cluster allows, 8h"},
		{&options.Shell{}, "stdout=true&ttl=-1s", "ttl "},
		{&options.Shell{}, "stdout=true&ttl=0", "ttl "},
		{&options.Shell{}, "stdout=true&memory=3Gi", "more than this cluster allows, 2Gi"},
		{&options.Shell{}, "stdout=true&memory=1", "too little"},
		{&options.Shell{}, "stdout=true&memory=-1Gi", "too little"},
		{&options.Shell{}, "stdout=true&memory=much", "not a quantity"},
		{&options.Shell{}, "stdout=true&memory=" + strings.Repeat("9", 40), "a quantity has at most"},
		{&options.Shell{}, "stdout=true&cpus=64", "more than this cluster allows, 4"},
		{&options.Shell{}, "stdout=true&cpus=0", "too little"},
		{&options.Shell{}, "stdout=true&image=A%20B", "image "},
		{&options.Shell{}, "stdout=true&image=" + strings.Repeat("a", 2000), "image has 2000 bytes"},
		{&options.Shell{}, "stdout=true&term=" + strings.Repeat("a", 65), "term has 65 bytes"},
		{&options.Files{Container: "a"}, "path=/tmp&keep=ABCDEFGHIJKLMNOPQRSTUVWXYZ", "keep is for op unpack alone"},
		{&options.Files{Container: "a"}, "path=/tmp&op=unpack&keep=../../etc/passwd", "keep is for op unpack alone"},
		{&options.Exec{}, "stdout=true&command=ls", "image is missing"},
		{&options.Exec{}, "stdout=true&image=a&profile=restricted", `"profile" is unknown`},
		{&options.Files{}, "op=pack", "path is missing"},
		{&options.Files{}, "path=/a%00b", "zero byte"},
		{&options.Files{}, "path=" + strings.Repeat("a", 5000), "path has 5000 bytes"},
		{&options.Files{}, "path=/a&op=remove", "choose one of pack, unpack"},
		{&options.Files{}, "path=/a&op=unpack&follow=true", "for op pack alone"},
		{&options.Files{}, "path=/a&image=mine", `"image" is unknown`},
	} {
		if got, err := ask(t, c, d.o, d.query); err == nil || !strings.Contains(err.Error(), d.want) {
			t.Errorf("%T %.80s: got %+v, %v; want words with %q", d.o, d.query, got, err, d.want)
		}
	}
}

// A cluster's own limits bound also what nobody has asked for, and limits that leave nothing are refused.
func TestLimits(t *testing.T) {
	small := options.Limits{TTL: time.Minute, Memory: 64 << 20, CPUs: 0.5}
	s, err := (&options.Shell{Streams: options.Streams{Stdout: true}}).Session(small)
	if err != nil || s.Seconds != 60 || s.Memory != 64<<20 || s.CPUs != 0.5 {
		t.Errorf("got %+v, %v", s, err)
	}
	for _, l := range []options.Limits{{}, {TTL: 8 * 24 * time.Hour, Memory: 1 << 30, CPUs: 1},
		{TTL: time.Hour, Memory: 1, CPUs: 1}, {TTL: time.Hour, Memory: 1 << 30}} {
		if l.Validate() == nil {
			t.Errorf("%+v leaves nothing, and is taken", l)
		}
	}
	if err := options.DefaultLimits().Validate(); err != nil {
		t.Error(err)
	}
}

// A session that is to end is named as the API names them, and nothing else is.
func TestSessionNames(t *testing.T) {
	for _, c := range []struct {
		method, name, want string
	}{{"GET", "", ""}, {"DELETE", "", ""}, {"DELETE", "0123456789ab", ""}, {"GET", "0123456789ab", "for DELETE alone"},
		{"DELETE", "0123456789", "12 hexadecimal digits"}, {"DELETE", "../../../etc", "12 hexadecimal digits"}} {
		err := (&options.Sessions{Session: c.name}).Validate(c.method)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s: %v", c.method, c.name, err)
		}
	}
}

// What was copied shares nothing with what it was copied from.
func TestCopies(t *testing.T) {
	shell, exec := &options.Shell{Command: []string{"a"}}, &options.Exec{Command: []string{"a"}}
	for _, o := range []runtime.Object{shell, exec, &options.Files{Path: "/a"}, &options.Evidence{},
		&options.Sessions{Session: "a"}, &options.Pod{}} {
		if !reflect.DeepEqual(o, o.DeepCopyObject()) {
			t.Errorf("%T: the copy is another", o)
		}
	}
	a, _ := shell.DeepCopyObject().(*options.Shell)
	b, _ := exec.DeepCopyObject().(*options.Exec)
	a.Command[0], b.Command[0] = "b", "b"
	if shell.Command[0] != "a" || exec.Command[0] != "a" {
		t.Error("a copy shares its command")
	}
}

// Whatever comes as a query, nobody gets more than the limits, and a session that is made fits what was asked.
func FuzzOptions(f *testing.F) {
	f.Add("stdout=true&profile=restricted&user=5&ttl=1h&memory=1Gi&cpus=1")
	f.Add("path=/etc&op=unpack&container=a")
	f.Add("stdin=1&image=alpine&command=a&command=b&writable=true&term=x")
	f.Add("session=0123456789ab")
	c := codec(f)
	most := options.DefaultLimits()
	f.Fuzz(func(t *testing.T, text string) {
		q, err := url.ParseQuery(text)
		if err != nil {
			return
		}
		for _, o := range []sessioner{&options.Shell{}, &options.Exec{}, &options.Files{}} {
			if c.DecodeParameters(q, options.GroupVersion(), o) != nil {
				continue
			}
			s, err := o.Session(most)
			if err != nil {
				continue
			}
			if s.Seconds < 1 || s.Seconds > int64(most.TTL/time.Second) || s.Memory < 1 || s.Memory > most.Memory ||
				s.CPUs <= 0 || s.CPUs > most.CPUs {
				t.Errorf("%q: the session has %+v", text, s)
			}
			if s.Profile == "restricted" && (s.User == "" || s.User == "0" || strings.HasPrefix(s.User, "0:")) {
				t.Errorf("%q: restricted, and user %q", text, s.User)
			}
			if s.As == wire.Files && (s.Image != "" || !slices.Equal(s.Command[2:4],
				[]string{"--root", "/c/" + s.Container}) ||
				!strings.HasPrefix(s.Command[len(s.Command)-1], "/")) {
				t.Errorf("%q: files by %q", text, s.Command)
			}
		}
		_ = c.DecodeParameters(q, options.GroupVersion(), &options.Evidence{})
		_ = c.DecodeParameters(q, options.GroupVersion(), &options.Sessions{})
	})
}
