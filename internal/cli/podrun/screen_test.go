// SPDX-License-Identifier: Apache-2.0

package podrun

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// named is a screen of so many pods of so many containers.
func named(out, errs io.Writer, pods, containers int, prefix *bool) *Screen {
	s := &Screen{Out: out, Err: errs, Start: time.Now()}
	list := make([]*corev1.Pod, pods)
	for i := range list {
		list[i] = &corev1.Pod{Spec: corev1.PodSpec{Containers: make([]corev1.Container, containers)}}
	}
	s.expect(list, 0, prefix)
	return s
}

// A name stands before lines where several containers write; --prefix decides otherwise.
func TestPrefix(t *testing.T) {
	for name, c := range map[string]struct {
		pods, containers int
		prefix           *bool
		want             string
	}{
		"one":            {1, 1, nil, "x\ny"},
		"two":            {1, 2, nil, "c | x\nc | y\n"},
		"two pods":       {2, 1, nil, "p/c | x\np/c | y\n"},
		"wanted":         {1, 1, ptr.To(true), "c | x\nc | y\n"},
		"two, unwanted":  {1, 2, ptr.To(false), "x\ny"},
		"pods, unwanted": {2, 2, ptr.To(false), "x\ny"},
	} {
		var out, errs bytes.Buffer
		s := named(&out, &errs, c.pods, c.containers, c.prefix)
		for stream, asError := range map[*bytes.Buffer]bool{&out: false, &errs: true} {
			w := s.Log("p", "c", asError)
			fmt.Fprint(w, "x\ny")
			w.Close()
			if stream.String() != c.want {
				t.Errorf("%s: wrote %q, want %q", name, stream.String(), c.want)
			}
		}
	}
}

func TestScreen(t *testing.T) {
	var out, errs bytes.Buffer
	s := named(&out, &errs, 1, 2, nil)
	a, b := s.Log("p", "a", false), s.Log("p", "b", false)
	fmt.Fprint(a, "one\ntw")
	fmt.Fprint(b, "other\n")
	fmt.Fprint(a, "o\nrest")
	a.Close()
	b.Close()
	if want := "a | one\nb | other\na | two\na | rest\n"; out.String() != want {
		t.Errorf("wrote %q, want %q", out.String(), want)
	}
	out.Reset()
	s.Colour = true
	c := s.Log("p", "c", false)
	fmt.Fprintln(c, "x")
	if want := palette[2] + "c |" + normal + " x\n"; out.String() != want {
		t.Errorf("wrote %q, want %q", out.String(), want)
	}
	c = s.Log("p", "c", false)
	c.Write(bytes.Repeat([]byte("y"), 3*maxLine))
	if strings.Count(out.String(), "\n") < 2 {
		t.Error("an endless line is never written")
	}
}

// On a person's screen a container's open line is ended before a line of progress; in a file nothing is added to it.
func TestOpenLine(t *testing.T) {
	for screen, want := range map[bool]string{true: "x\n", false: "x"} {
		var out bytes.Buffer
		s := named(&out, &out, 1, 1, nil)
		s.OneLine = screen
		fmt.Fprint(s.Log("p", "c", false), "x")
		s.Say("done")
		if got, _, _ := strings.Cut(out.String(), " "); got != want {
			t.Errorf("screen %v: wrote %q", screen, out.String())
		}
	}
}

// That nobody reads any more is told once, and the rest is read all the same.
func TestLost(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	s := named(w, io.Discard, 1, 1, nil)
	told := 0
	s.Lost = func() { told++ }
	for range 3 {
		if n, err := s.Log("p", "c", false).Write([]byte("line\n")); n != 5 || err != nil {
			t.Errorf("wrote %d, %v", n, err)
		}
	}
	if told != 1 {
		t.Errorf("told %d times", told)
	}
}

// A passing line is replaced by what comes next, and shown on a person's screen alone.
func TestPassingLine(t *testing.T) {
	for width, want := range map[int]string{80: "        1 of 2\r\x1b[K        2 of 2\r\x1b[Kx\n", 0: "x\n", 12: "        1 o\r\x1b[K        2 o\r\x1b[Kx\n"} {
		var out bytes.Buffer
		s := named(&out, &out, 1, 1, nil)
		s.Rows.Width = width
		s.Pass("1 of 2")
		s.Pass("2 of 2")
		fmt.Fprintln(s.Log("p", "c", false), "x")
		s.Pass("")
		if out.String() != want {
			t.Errorf("%d columns: wrote %q, want %q", width, out.String(), want)
		}
	}
}
