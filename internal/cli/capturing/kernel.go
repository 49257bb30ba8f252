// SPDX-License-Identifier: Apache-2.0

package capturing

import (
	"context"
	"errors"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/wherryproject/wherry/internal/capture"
)

// kernelFile has the kernel's messages about what is captured.
const kernelFile = "kernel.log"

// kernelPart takes this machine's kernel's messages that name one of so many: a container's ID, a pod's UID, as the
// paths of their cgroups do. On another machine there are none, and only root may read them: they are an extra.
func kernelPart(names ...string) part {
	return part{"the kernel's messages", func(_ context.Context, w *capture.Writer) error {
		messages, err := kernelMessages()
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

// mostMessages bounds what is read of the kernel's messages, which has a ring of some hundred kilobytes for them.
const mostMessages = 100_000

// kernelMessages are those that the kernel still has.
func kernelMessages() ([]string, error) {
	fd, err := unix.Open("/dev/kmsg", unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: "/dev/kmsg", Err: err}
	}
	defer unix.Close(fd)
	var all []string
	record := make([]byte, 16<<10) // one of them, which the kernel never cuts shorter
	for len(all) < mostMessages {
		n, err := unix.Read(fd, record)
		switch {
		case errors.Is(err, unix.EAGAIN):
			return all, nil
		case errors.Is(err, unix.EPIPE) || errors.Is(err, unix.EINTR): // it was overwritten meanwhile: the next one
			continue
		case err != nil:
			return all, err
		}
		all = append(all, string(record[:n]))
	}
	return all, nil
}

// about are the messages that name one of so many, and, of a report of memory that ran out, the line that says who was
// killed, which is the next one and names nobody.
func about(messages, names []string) string {
	var b strings.Builder
	before := false
	for _, m := range messages {
		head, text, _ := strings.Cut(m, ";")
		text, _, _ = strings.Cut(text, "\n")
		named := false
		for _, name := range names {
			named = named || name != "" && (strings.Contains(text, name) ||
				strings.Contains(text, strings.ReplaceAll(name, "-", "_")))
		}
		if named || before && strings.Contains(text, "Killed process") {
			fields := strings.Split(head, ",")
			if len(fields) > 2 {
				b.WriteString("[" + fields[2] + " µs] ")
			}
			b.WriteString(text + "\n")
		}
		before = named
	}
	return b.String()
}
