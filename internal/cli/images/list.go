// SPDX-License-Identifier: Apache-2.0

package images

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/wherryproject/wherry/internal/cli/cmdline"
	"github.com/wherryproject/wherry/internal/imagename"
	"github.com/wherryproject/wherry/internal/server/hostapi"
)

// imageListFlags are the flags of `wherry image ls`.
type imageListFlags struct {
	output  string
	format  string
	quiet   bool
	all     bool
	whole   bool
	digests bool
	filters []string
}

func newImageList(t cmdline.Terminal) *cobra.Command {
	f := &imageListFlags{}
	cmd := &cobra.Command{
		Use:     "ls [PATTERN...]",
		Aliases: []string{"list"},
		Short:   "List the node's images",
		Long: `List the node's images, or those whose names match a pattern, in which * matches any characters except a slash.

The images built into wherry (the toolbox, and the first process of each pod) are listed only with --all.

--format is a Go template for each line, with docker's fields: .Repository, .Tag, .Digest, .ID and .Size. After the word table it defines
the columns of a table. json prints each image's fields as a line of JSON.`,
		Example: `  sudo wherry image ls
  sudo wherry image ls 'registry.example.com/team/*'
  sudo wherry image ls -f dangling=true
  sudo wherry image ls -o json
  sudo wherry image ls --format '{{.Repository}}:{{.Tag}} {{.Size}}'
  sudo wherry image ls --format 'table {{.ID}}\t{{.Repository}}'`,
	}
	client := cmdline.Host(cmd)
	cmd.RunE = func(cmd *cobra.Command, patterns []string) error {
		wanted, err := f.wanted(patterns)
		if err != nil {
			return cmdline.ExitWith(cmdline.ExitUsage, err)
		}
		show, err := f.shown()
		if err != nil {
			return cmdline.ExitWith(cmdline.ExitUsage, err)
		}
		images, err := client().List(cmd.Context())
		if err != nil {
			return err
		}
		images = choose(images, func(i *hostapi.Image) bool { return (f.all || !i.BuiltIn) && wanted(i) })
		return show(t, images)
	}
	fl := cmd.Flags()
	cmdline.OutputFlag(cmd, &f.output)
	fl.BoolVarP(&f.quiet, "quiet", "q", false, "print only names, or the ID of an image that has none")
	fl.BoolVarP(&f.all, "all", "a", false, "also list the images built into wherry")
	fl.BoolVar(&f.whole, "no-trunc", false, "print full IDs")
	fl.BoolVar(&f.digests, "digests", false, "also print the images' registry digests")
	fl.StringArrayVarP(&f.filters, "filter", "f", nil,
		"only images that match `KEY=VALUE`: dangling=true (without a name), dangling=false, or reference=PATTERN")
	_ = cmd.RegisterFlagCompletionFunc("filter", cobra.FixedCompletions([]string{"dangling=true", "dangling=false",
		"reference="}, cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveNoSpace))
	formatFlag(cmd, &f.format, "", "json, or a Go template for each line; see above for its fields")
	return cmd
}

// shown decides how the images are printed.
func (f *imageListFlags) shown() (func(cmdline.Terminal, []hostapi.Image) error, error) {
	switch {
	case f.format == "" && f.output != "":
		return func(t cmdline.Terminal, images []hostapi.Image) error { return cmdline.PrintAs(t, f.output, images) },
			nil
	case f.format == "":
		return func(t cmdline.Terminal, images []hostapi.Image) error { return f.print(t.Out, images) }, nil
	case f.output != "" || f.quiet:
		return nil, errors.New("--format, -o and -q exclude each other; give one of them")
	}
	l, err := parseLayout(f.format)
	return func(t cmdline.Terminal, images []hostapi.Image) error {
		var lines []any
		for _, i := range images {
			for _, l := range f.linesOf(i) {
				lines = append(lines, l)
			}
		}
		return l.write(t.Out, lines)
	}, err
}

// choose keeps the images that fit, which may lose names by that.
func choose(images []hostapi.Image, fits func(*hostapi.Image) bool) []hostapi.Image {
	kept := []hostapi.Image{}
	for _, i := range images {
		if fits(&i) {
			kept = append(kept, i)
		}
	}
	return kept
}

// wanted decides which images are listed: those that one of the patterns stands for, with the names that it stands for,
// and every filter.
func (f *imageListFlags) wanted(patterns []string) (func(*hostapi.Image) bool, error) {
	var checks []func(*hostapi.Image) bool
	stand := func(patterns []string) error {
		for _, p := range patterns {
			if err := imagename.Check(p); err != nil {
				return err
			}
		}
		checks = append(checks, func(i *hostapi.Image) bool { return named(imagename.Patterns(patterns), i) })
		return nil
	}
	if len(patterns) > 0 {
		if err := stand(patterns); err != nil {
			return nil, err
		}
	}
	for _, filter := range f.filters {
		switch key, value, _ := strings.Cut(filter, "="); {
		case key == "reference":
			if err := stand([]string{value}); err != nil {
				return nil, err
			}
		case key == "dangling" && (value == "true" || value == "false"):
			checks = append(checks, func(i *hostapi.Image) bool { return len(i.Tags) == 0 == (value == "true") })
		default:
			return nil, fmt.Errorf("--filter %s: use dangling=true, dangling=false or reference=PATTERN", filter)
		}
	}
	return func(i *hostapi.Image) bool {
		return !slices.ContainsFunc(checks, func(fits func(*hostapi.Image) bool) bool { return !fits(i) })
	}, nil
}

// named leaves an image the names that a pattern stands for, more rather than less: one without a tag stands for all of
// them. It reports whether there is one.
func named(patterns imagename.Patterns, i *hostapi.Image) bool {
	other := func(name string) bool {
		ref, err := imagename.Parse(name)
		if err != nil {
			return true
		}
		_, ok := patterns.Touch(ref, name)
		return !ok
	}
	i.Tags = slices.DeleteFunc(slices.Clone(i.Tags), other)
	i.Digests = slices.DeleteFunc(slices.Clone(i.Digests), other)
	return len(i.Tags)+len(i.Digests) > 0
}

// print writes a table, or names. An image stands in it once for each of its names.
func (f *imageListFlags) print(w io.Writer, images []hostapi.Image) error {
	var rows [][]string
	for _, i := range images {
		id := shortID(i.ID)
		if f.whole {
			id = i.ID
		}
		names := i.Tags
		if len(names) == 0 && len(i.Digests) > 0 {
			names = i.Digests
		}
		if len(names) == 0 {
			names = []string{"<none>"}
		}
		for _, n := range names {
			if n == "<none>" && f.quiet {
				n = id
			}
			row := []string{n, id, size(i.Size)}
			if f.digests {
				row = slices.Insert(row, 1, digestOf(i))
			}
			rows = append(rows, row)
		}
	}
	slices.SortFunc(rows, func(a, b []string) int { return strings.Compare(a[0], b[0]) })
	if f.quiet {
		for _, r := range rows {
			fmt.Fprintln(w, r[0])
		}
		return nil
	}
	head := []string{"IMAGE", "ID", "SIZE"}
	if f.digests {
		head = slices.Insert(head, 1, "DIGEST")
	}
	tw := tabwriter.NewWriter(w, 0, 8, 3, ' ', 0)
	for _, r := range append([][]string{head}, rows...) {
		fmt.Fprintln(tw, strings.Join(r, "\t"))
	}
	return tw.Flush()
}

// digestOf is the digest that a registry gave an image; one that was imported has none.
func digestOf(i hostapi.Image) string {
	for _, d := range i.Digests {
		if _, digest, ok := strings.Cut(d, "@"); ok {
			return digest
		}
	}
	return "<none>"
}

func shortID(id string) string {
	id = strings.TrimPrefix(id, "sha256:")
	return id[:min(12, len(id))]
}

func size(n uint64) string {
	if n < 1<<20 {
		return fmt.Sprintf("%.1fKiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%.1fMiB", float64(n)/(1<<20))
}

// NewImages is docker's word for the list.
func NewImages(t cmdline.Terminal) *cobra.Command {
	cmd := newImageList(t)
	cmd.Use, cmd.Aliases = "images [PATTERN...]", nil
	cmd.Short = "List the node's images; the same as wherry image ls"
	return cmd
}
