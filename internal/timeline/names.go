// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"
)

// NamesText lists the names that a pod has looked up, the oldest first.
func NamesText(h History, o Options) string {
	if h.NoNames != "" {
		return h.NoNames + "\n"
	}
	if len(h.Names) == 0 {
		return "it has looked up no name\n"
	}
	if o.Zone == nil {
		o.Zone = time.UTC
	}
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "AT\tNAME\tTYPE\tCODE\tANSWER\tFROM\tTOOK")
	for _, n := range h.Names {
		answer := strings.Join(n.Answer, ", ")
		if n.More > 0 {
			answer += fmt.Sprintf(" and %d more", n.More)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", n.At.In(o.Zone).Format("15:04:05.000"), n.Name, n.Type,
			dashed(n.Code), dashed(answer), n.From, n.Took.Round(10*time.Microsecond))
	}
	_ = w.Flush() // a builder takes all
	return b.String()
}

func dashed(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
