// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"encoding/xml"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/tools/txtar"
)

// What is written in a picture stays within it and does not run into what is beside it, however long names and messages
// are; the title has the whole name. A letter counts as 0.55 of its height, as those of sans-serif fonts have on average.
func TestPictureFits(t *testing.T) {
	long := script(t, strings.NewReplacer("NAME", strings.Repeat("n", 63), "WORDS",
		strings.Repeat("many words ", 60)).Replace(
		"container regular NAME\n0 seen\n0.1 pull NAME begin\n0.2 pull NAME end failed: WORDS\n0.3 waiting NAME: WORDS\nnow 1"))
	long.Name, long.Namespace, long.Node = strings.Repeat("p", 253), strings.Repeat("s", 63), strings.Repeat("m", 63)
	histories := []History{long}
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no pictures", err)
	}
	for _, file := range files {
		a, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		histories = append(histories, script(t, string(a.Files[0].Data)))
	}
	for _, h := range histories {
		for _, line := range linesOf(t, SVG(h, nil)) {
			from, to := line.X, line.X+line.width()
			if line.Anchor == "middle" {
				from, to = line.X-line.width()/2, line.X+line.width()/2
			}
			limit := float64(svgWidth)
			if line.X < svgLeft && line.Weight == "bold" && line.Y > svgTop && line.Y < line.legend {
				limit = svgLeft // a row's name stands before its bars
			}
			if from < 0 || to > limit || line.Y > line.height {
				t.Errorf("%s: %q reaches from %.0f to %.0f of %.0f, %.0f down of %.0f", h.Name, line.Text, from, to,
					limit, line.Y, line.height)
			}
		}
	}
	if got := SVG(long, nil); !strings.Contains(got, "<title>Timeline of pod "+long.Namespace+"/"+long.Name+
		"</title>") {
		t.Error("the whole name is nowhere")
	}
}

// written is a line of text in a picture.
type written struct {
	X      float64 `xml:"x,attr"`
	Y      float64 `xml:"y,attr"`
	Anchor string  `xml:"text-anchor,attr"`
	Weight string  `xml:"font-weight,attr"`
	Size   float64 `xml:"font-size,attr"`
	Text   string  `xml:",chardata"`
	height float64 // of the picture
	legend float64 // where the rows end
}

func (w written) width() float64 { return w.Size * 0.55 * float64(utf8.RuneCountInString(w.Text)) }

func linesOf(t *testing.T, picture string) []written {
	t.Helper()
	var p struct {
		Height float64   `xml:"height,attr"`
		Texts  []written `xml:"text"`
		Lines  []struct {
			Bottom float64 `xml:"y2,attr"`
		} `xml:"line"`
	}
	if err := xml.Unmarshal([]byte(picture), &p); err != nil {
		t.Fatal(err)
	}
	if len(p.Texts) < 3 || len(p.Lines) == 0 {
		t.Fatalf("the test is blind: %d texts, %d lines", len(p.Texts), len(p.Lines))
	}
	for i := range p.Texts {
		if p.Texts[i].Size == 0 {
			p.Texts[i].Size = 12
		}
		p.Texts[i].height, p.Texts[i].legend = p.Height, p.Lines[0].Bottom+6
	}
	return p.Texts
}
