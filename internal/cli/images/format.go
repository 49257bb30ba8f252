// SPDX-License-Identifier: Apache-2.0

package images

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"text/template"

	"github.com/spf13/cobra"

	"github.com/wherryproject/wherry/internal/server/hostapi"
)

// line is what --format of the list has of an image, under docker's names: one for each of its names.
type line struct {
	Repository, Tag, Digest, ID, Size string
}

// headings are those of the columns of a table that --format describes.
var headings = line{"REPOSITORY", "TAG", "DIGEST", "IMAGE ID", "SIZE"}

const none = "<none>"

// layout is what --format asks for: JSON, or a template, for each line of a list alone or in a table.
type layout struct {
	template *template.Template // nil: JSON
	table    bool
}

// formatFlag adds docker's --format.
func formatFlag(cmd *cobra.Command, format *string, shorthand, usage string) {
	cmd.Flags().StringVarP(format, "format", shorthand, "", usage)
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{"json"},
		cobra.ShellCompDirectiveNoFileComp))
}

// parseLayout reads --format: json, a template, or the word table and a template.
func parseLayout(text string) (l layout, err error) {
	if text == "json" {
		return l, nil
	}
	if rest, ok := strings.CutPrefix(text, "table "); ok {
		l.table, text = true, rest
	}
	// A shell hands these over as they are written.
	text = strings.NewReplacer(`\t`, "\t", `\n`, "\n").Replace(text)
	if strings.TrimSpace(text) == "" || text == "table" {
		return l, errors.New("--format: use json or a Go template, for example '{{.Repository}}:{{.Tag}}'")
	}
	l.template, err = template.New("").Option("missingkey=error").Funcs(template.FuncMap{
		"json": func(v any) (string, error) {
			text, err := marshal(v)
			return string(text), err
		},
		"join": strings.Join, "lower": strings.ToLower, "split": strings.Split, "upper": strings.ToUpper,
	}).Parse(text)
	if err != nil {
		return l, fmt.Errorf("--format is not a Go template: %s", reason(err))
	}
	return l, nil
}

// marshal is JSON that is not made safe for web pages.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSpace(b.Bytes()), err
}

// reason is what a template's error says besides that it is one.
func reason(err error) string { return strings.TrimPrefix(err.Error(), "template: ") }

// write writes each of what is listed on a line of its own. Nothing is written unless all can be.
func (l layout) write(w io.Writer, items []any) error {
	var b bytes.Buffer
	out := io.Writer(&b)
	tw := tabwriter.NewWriter(&b, 0, 8, 3, ' ', 0)
	if l.table {
		out = tw
		items = append([]any{headings}, items...)
	}
	for _, i := range items {
		if err := l.one(out, i); err != nil {
			return err
		}
		fmt.Fprintln(out)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	_, err := w.Write(b.Bytes())
	return err
}

func (l layout) one(w io.Writer, item any) error {
	if l.template == nil {
		text, err := marshal(item)
		if err == nil {
			_, err = w.Write(text)
		}
		return err
	}
	if err := l.template.Execute(w, item); err != nil {
		return fmt.Errorf("--format: %s", reason(err))
	}
	return nil
}

// linesOf are an image's lines: for each tag, else for each digest, else one without a name.
func (f *imageListFlags) linesOf(i hostapi.Image) (all []line) {
	id := shortID(i.ID)
	if f.whole {
		id = i.ID
	}
	names := i.Tags
	if len(names) == 0 {
		names = i.Digests
	}
	for _, n := range names {
		repository, tag := split(n)
		all = append(all, line{repository, tag, digestOf(i), id, size(i.Size)})
	}
	if len(names) == 0 {
		all = []line{{none, none, none, id, size(i.Size)}}
	}
	return all
}

// split is a name's repository and tag.
func split(name string) (repository, tag string) {
	repository, _, _ = strings.Cut(name, "@")
	if i := strings.LastIndexByte(repository, ':'); i > strings.LastIndexByte(repository, '/') {
		return repository[:i], repository[i+1:]
	}
	return repository, none
}

// asShown are images with the fields that -o json shows.
func asShown(images []hostapi.Image) (all []any, err error) {
	text, err := json.Marshal(images)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber() // a size is an integer
	err = d.Decode(&all)
	return all, err
}
