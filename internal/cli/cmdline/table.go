// SPDX-License-Identifier: Apache-2.0

package cmdline

import (
	"fmt"
	"strings"
	"text/tabwriter"
)

// Table is what a command lists for people: a heading, and a row for each thing.
type Table struct {
	Head []string
	Rows [][]string // an empty cell is shown as a dash
	None string     // is printed on standard error, where there are no rows
}

// Add adds a row.
func (t *Table) Add(cells ...string) { t.Rows = append(t.Rows, cells) }

// Print writes the table.
func (t *Table) Print(to Terminal) error {
	if len(t.Rows) == 0 && t.None != "" {
		_, err := fmt.Fprintln(to.Err, t.None)
		return err
	}
	w := tabwriter.NewWriter(to.Out, 0, 8, 3, ' ', 0)
	fmt.Fprintln(w, strings.Join(t.Head, "\t"))
	for _, row := range t.Rows {
		cells := make([]string, len(row))
		for i, c := range row {
			cells[i] = DashIfNone(c)
		}
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	return w.Flush()
}
