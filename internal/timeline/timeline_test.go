// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/wherryproject/wherry/internal/podspec"
)

var update = flag.Bool("update", false, "write what is drawn into testdata")

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// script reads a history: one moment a line, "SECONDS WHAT [CONTAINER[/ATTEMPT]] [begin|end|failed|code=N|probe=P|times=N] [: text]".
// "container KIND NAME" names a container, "now SECONDS" and "gone" end it.
func script(t *testing.T, text string) History {
	t.Helper()
	h := History{Pod: Pod{Namespace: "default", Name: "web", UID: "u1", Node: "node-1", Created: noon}}
	for n, line := range strings.Split(strings.TrimSpace(text), "\n") {
		line, words, _ := strings.Cut(line, ": ")
		f := strings.Fields(line)
		switch f[0] {
		case "container":
			c := Container{Name: f[2]}
			if err := c.Kind.UnmarshalText([]byte(f[1])); err != nil {
				t.Fatal(err)
			}
			h.Containers = append(h.Containers, c)
			continue
		case "now":
			h.Now = at(t, f[1])
			continue
		case "gone":
			h.Gone = true
			continue
		}
		m := Moment{Seq: n, At: at(t, f[0]), What: What(f[1]), Text: words}
		for _, w := range f[2:] {
			key, value, is := strings.Cut(w, "=")
			num, _ := strconv.Atoi(value)
			switch {
			case w == "begin" || w == "end":
				m.Edge = Edge(w)
			case w == "failed":
				m.Failed = true
			case key == "code":
				m.Code = int32(num)
			case key == "times":
				m.Times = num
			case key == "last":
				m.Last = at(t, value)
			case key == "probe":
				m.Probe = value
			case is:
				t.Fatalf("what is %q?", w)
			default:
				name, attempt, _ := strings.Cut(w, "/")
				k, _ := strconv.Atoi(attempt)
				m.Container, m.Attempt = name, uint32(k)
			}
		}
		h.Moments = append(h.Moments, m)
	}
	return h
}

func at(t *testing.T, seconds string) time.Time {
	t.Helper()
	s, err := strconv.ParseFloat(seconds, 64)
	if err != nil {
		t.Fatal(err)
	}
	return noon.Add(time.Duration(s * 1e9))
}

// The pictures of testdata: what a person sees of each kind of life.
func TestPictures(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no pictures", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) { picture(t, file) })
	}
}

func picture(t *testing.T, file string) {
	a, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	h := script(t, string(a.Files[0].Data))
	for i := 1; i < len(a.Files); i++ {
		f := &a.Files[i]
		var got string
		switch f.Name {
		case "text":
			got = Text(h, Options{Width: 100})
		case "ascii":
			got = Text(h, Options{Width: 80, ASCII: true})
		case "wide":
			got = Text(h, Options{Width: 100, Moments: true})
		case "colour":
			got = strings.ReplaceAll(Text(h, Options{Width: 80, Colour: true}), "\x1b", "^")
		case "svg":
			got = SVG(h, nil)
		case "html":
			got = HTML(h, nil)
		default:
			t.Fatalf("no such drawing: %s", f.Name)
		}
		if got != string(f.Data) && !*update {
			t.Errorf("%s: got\n%s\nwant\n%s", f.Name, got, f.Data)
		}
		f.Data = []byte(got)
	}
	if *update {
		if err := os.WriteFile(file, txtar.Format(a), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// Clocks that are wrong by centuries, and none at all, do not keep the picture from being drawn.
func TestWrongClocks(t *testing.T) {
	for _, now := range []time.Time{{}, noon, noon.AddDate(5000, 0, 0)} {
		h := History{Now: now, Moments: []Moment{{At: time.Time{}.Add(1), What: Sandbox, Edge: Begin}, {Seq: 1, At: noon, What: Ready},
			{Seq: 2, At: noon.AddDate(3000, 0, 0), What: Exited, Container: "web"}}}
		for n := range len(h.Moments) + 1 {
			part := h
			part.Moments = h.Moments[n:]
			if Text(part, Options{}) == "" || SVG(part, nil) == "" {
				t.Error("nothing is drawn")
			}
		}
	}
}

// Every line stays within the terminal, whatever the width.
func TestTextFits(t *testing.T) {
	for _, file := range []string{"testdata/start.txtar", "testdata/crash.txtar", "testdata/sidecars.txtar"} {
		a, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		h := script(t, string(a.Files[0].Data))
		for _, width := range []int{50, 80, 100, 137, 240} {
			for _, line := range strings.Split(Text(h, Options{Width: width}), "\n") {
				if n := len([]rune(line)); n > width {
					t.Errorf("%s at %d columns: a line of %d: %s", file, width, n, line)
				}
			}
		}
	}
}

// A picture is XML, and words from others cannot become markup or terminal commands.
func TestForeignWords(t *testing.T) {
	h := script(t, "0 seen\n0.1 pull web begin\n0.2 pull web end failed: </text><script>alert(1)</script>\x1b[2J\x07\nnow 1")
	for _, picture := range []string{SVG(h, nil), HTML(h, nil)} {
		if strings.Contains(picture, "<script>") {
			t.Error("markup from a message is in the picture")
		}
	}
	d := xml.NewDecoder(strings.NewReader(SVG(h, nil)))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if strings.ContainsAny(Text(h, Options{Moments: true}), "\x1b\x07") {
		t.Error("a message commands the terminal")
	}
}

// The shares of the way to readiness add up to it.
func TestSharesAddUp(t *testing.T) {
	for _, file := range []string{"testdata/start.txtar", "testdata/sidecars.txtar", "testdata/crash.txtar"} {
		a, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		h := script(t, string(a.Files[0].Data))
		ready := h.firstOf(Ready, time.Time{})
		p := Draw(h)
		sum := time.Duration(0)
		for _, s := range p.WayUp(ready) {
			sum += s.Took
		}
		if want := ready.Sub(h.Begin()); sum < want-5*time.Millisecond || sum > want {
			t.Errorf("%s: shares add up to %s, ready after %s", file, sum, want)
		}
	}
}

// A short start is still seen after a long quiet life.
func TestAxisCutsQuietStretches(t *testing.T) {
	h := script(t, "0 seen\n0 sandbox begin\n0.1 sandbox end\n0.3 ready\nnow 86400")
	a := NewAxis(Draw(h), 100)
	if x := a.At(at(t, "0.3")); x < 50 {
		t.Errorf("0.3 s of a day end at %.0f of 100", x)
	}
	if len(a.Cuts()) != 1 {
		t.Errorf("cuts: %v", a.Cuts())
	}
	ticks := a.Ticks(10)
	if last := ticks[len(ticks)-1]; last.Label != "1d00h" || last.At != 100 {
		t.Errorf("the last tick is %+v", last)
	}
	for i := 1; i < len(ticks); i++ {
		if ticks[i].At < ticks[i-1].At {
			t.Errorf("ticks go back: %+v", ticks)
		}
	}
}

// A crash loop of any length stays within bounds, and how it began, what happened once and how it is now remain.
func TestFold(t *testing.T) {
	var all []Moment
	add := func(m Moment) {
		m.Seq, m.At = len(all), noon.Add(time.Duration(len(all))*time.Second)
		all = append(all, m)
		all, _ = Fold(all, 200)
		if len(all) > 200 {
			t.Fatalf("%d moments", len(all))
		}
	}
	add(Moment{What: Seen})
	seq := 0
	for n := range uint32(2000) {
		for _, m := range []Moment{{What: Start, Edge: Begin}, {What: Start, Edge: End}, {What: Running}, {What: Exited, Code: 1}} {
			m.Container, m.Attempt = "web", n
			m.Seq = seq
			add(m)
		}
		if n == 700 {
			add(Moment{What: SandboxLost})
		}
	}
	folded, lost := 0, 0
	for _, m := range all {
		switch m.What {
		case Folded:
			folded += m.Times
		case SandboxLost:
			lost++
		}
	}
	if all[0].What != Seen || lost != 1 || all[len(all)-1].Attempt != 1999 {
		t.Errorf("the beginning, the one special moment or the end is lost: %v, %d, %v", all[0], lost, all[len(all)-1])
	}
	if folded < 7000 {
		t.Errorf("only %d of the dropped moments are told of", folded)
	}
}

func TestMergeReplacesAndAdds(t *testing.T) {
	h := History{Pod: Pod{UID: "u"}, Moments: []Moment{{Seq: 1, What: Probed}, {Seq: 2}}, Now: noon}
	h.Merge(History{Moments: []Moment{{Seq: 1, What: Probed, Times: 4}, {Seq: 3}}, Now: noon.Add(1), Gone: true})
	if got := fmt.Sprintf("%d %d %t %s", len(h.Moments), h.Moments[0].Times, h.Gone, h.UID); got != "3 4 true u" {
		t.Error(got)
	}
}

// Whatever the moments are, a picture comes out.
func FuzzText(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.txtar")
	for _, file := range files {
		if a, err := txtar.ParseFile(file); err == nil {
			f.Add(a.Files[0].Data)
		}
	}
	whats := []What{Volumes, Sandbox, Pull, Start, PostStart, PreStop, Stop, TakeDown, CleanUp, Seen, Created, Running, Exited, Started,
		Ready, Unready, Probed, Waiting, SandboxLost, Deleted, Phase, Removed, Left, Agent, Folded}
	f.Fuzz(func(t *testing.T, data []byte) {
		h := History{Now: noon, Gone: len(data)%2 == 0, Pod: Pod{Containers: []Container{{"a", podspec.Init}, {"b", podspec.Sidecar}, {"c", podspec.Main}}}}
		for i := 0; i+4 < len(data); i += 4 {
			m := Moment{Seq: i, At: noon.Add(time.Duration(int8(data[i])) * time.Second), What: whats[int(data[i+1])%len(whats)], Attempt: uint32(data[i+2] >> 6)}
			m.Edge = []Edge{"", Begin, End}[data[i+2]%3]
			m.Container = []string{"", "a", "b", "c", "d"}[data[i+3]%5]
			m.Failed, m.Code = data[i+3]&128 != 0, int32(data[i+3]&64)
			m.Text = []string{"", "Failed", "x: y", "Succeeded"}[data[i+2]>>2%4]
			h.Moments = append(h.Moments, m)
		}
		_ = Text(h, Options{Width: int(uint8(len(data)))})
		_ = HTML(h, nil)
		kept, _ := Fold(h.Moments, 10)
		if len(kept) > 10+2 { // never more than beginning, end and one for each container
			t.Fatalf("%d of %d moments kept", len(kept), len(h.Moments))
		}
	})
}

// A pod that is gone belongs to the namespace that has its name now unless that one is younger (RS-11).
func TestWithin(t *testing.T) {
	made := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	removed := func(at time.Time) []Moment { return []Moment{{What: Deleted, At: made}, {What: Removed, At: at}} }
	for _, row := range []struct {
		name string
		h    History
		want bool
	}{
		{"created before it", History{Pod: Pod{Created: made.Add(-time.Second)}}, false},
		{"created before it, removed after", History{Pod: Pod{Created: made.Add(-time.Second)}, Moments: removed(made.Add(time.Hour))}, false},
		{"created after it", History{Pod: Pod{Created: made.Add(time.Second)}}, true},
		{"created after it, the node's clock being behind", History{Pod: Pod{Created: made.Add(time.Second)}, Moments: removed(made.Add(-time.Hour))}, true},
		{"created with it", History{Pod: Pod{Created: made}, Moments: removed(made.Add(time.Second))}, true},
		{"created with it, still there", History{Pod: Pod{Created: made}, Moments: []Moment{{What: Seen, At: made}}}, true},
		{"come and gone in the second it was made in", History{Pod: Pod{Created: made}, Moments: removed(made.Add(900 * time.Millisecond))}, false},
		{"in another zone", History{Pod: Pod{Created: made.In(time.FixedZone("", 3600))}}, true},
		{"created nobody knows when", History{}, false},
	} {
		if got := row.h.Within(made); got != row.want {
			t.Errorf("%s: %t", row.name, got)
		}
	}
}

// Why an operation failed is told without the programs that the runtime's words came through.
func TestFailuresAreToldPlainly(t *testing.T) {
	h := script(t, "0 seen\n0.1 start web begin\n0.2 start web end failed: RunContainerError: failed to create containerd task: failed to create shim task: "+
		`OCI runtime create failed: runc create failed: unable to start container process: error during container init: exec: "x": not found: unknown`+"\nnow 1")
	const want = `failed: RunContainerError: exec: "x": not found`
	if got := Text(h, Options{}); !strings.Contains(got, "start "+want+"\n") {
		t.Errorf("lacks %q:\n%s", want, got)
	}
	if got := SVG(h, nil); !strings.Contains(got, strings.ReplaceAll(want, `"`, "&#34;")+"</title>") {
		t.Errorf("lacks %q:\n%s", want, got)
	}
}
