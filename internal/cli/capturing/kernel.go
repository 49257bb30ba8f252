// SPDX-License-Identifier: Apache-2.0

package capturing

import (
	"context"
	"fmt"
	"strings"

	"github.com/wherryproject/wherry/internal/capture"
	"github.com/wherryproject/wherry/internal/kernellog"
)

// kernelFile has the kernel's messages about what is captured.
const kernelFile = "kernel.log"

// kernelPart takes this machine's kernel's messages that name one of so many: a container's ID, a pod's UID, as the
// paths of their cgroups do. On another machine there are none, and only root may read them: they are an extra.
func kernelPart(names ...string) part {
	return part{"the kernel's messages", func(_ context.Context, w *capture.Writer) error {
		messages, err := kernellog.Read()
		if err != nil {
			w.Miss(kernelFile, err)
			return nil
		}
		text := about(messages, names)
		if text == "" {
			return nil
		}
		return w.Text(kernelFile, []byte(text))
	}}
}

// about are the messages that name one of so many, and, of a report of memory that ran out, the line that says who was
// killed, which is the next one and names nobody.
func about(messages []kernellog.Message, names []string) string {
	var b strings.Builder
	before := false
	for _, m := range messages {
		named := false
		for _, name := range names {
			named = named || name != "" && (strings.Contains(m.Text, name) ||
				strings.Contains(m.Text, strings.ReplaceAll(name, "-", "_")))
		}
		if named || before && strings.Contains(m.Text, "Killed process") {
			fmt.Fprintf(&b, "[%d µs] %s\n", m.At.Microseconds(), m.Text)
		}
		before = named
	}
	return b.String()
}
