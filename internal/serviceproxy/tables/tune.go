// SPDX-License-Identifier: Apache-2.0

package tables

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// conntrack is where the kernel has the settings of its table of connections, once it has one.
const conntrack = "/proc/sys/net/netfilter"

// Liberal says whether the machine tracks TCP connections without looking at windows.
func Liberal() bool {
	n, err := read(conntrack, "nf_conntrack_tcp_be_liberal")
	return err == nil && n != 0
}

// limit is a kube-proxy's default of a setting: how many seconds at least, or at most, a connection is remembered.
type limit struct {
	name        string
	least, most int
}

// limits: a connection that is half closed is remembered for an hour, so that its end still finds the way back (the
// kernel's default is a minute); one on which nothing happens for no more than a day (the kernel's is five).
func limits() []limit {
	return []limit{
		{name: "nf_conntrack_tcp_timeout_close_wait", least: 3600},
		{name: "nf_conntrack_tcp_timeout_established", most: 86400},
	}
}

// wanted is the setting that there should be for the one that is. A kube-proxy sets its defaults whatever there is;
// here one that is within them already, as who runs the machine may have had a reason for, stays. (Pure.)
func (l limit) wanted(is int) int {
	switch {
	case l.least > 0 && is < l.least:
		return l.least
	case l.most > 0 && is > l.most:
		return l.most
	}
	return is
}

// Tune makes the kernel's settings those that a kube-proxy's defaults ask for. They are the machine's, not a table's,
// and stay when nobody carries services any more.
func Tune() error { return tune(conntrack) }

func tune(folder string) error {
	var errs []error
	for _, l := range limits() {
		is, err := read(folder, l.name)
		if errors.Is(err, fs.ErrNotExist) { // this kernel does not tell connections of TCP apart
			continue
		}
		if want := l.wanted(is); err == nil && want != is {
			err = os.WriteFile(filepath.Join(folder, l.name), []byte(strconv.Itoa(want)), 0)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", l.name, err))
		}
	}
	return errors.Join(errs...)
}

func read(folder, name string) (int, error) {
	text, err := os.ReadFile(filepath.Join(folder, name))
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(text)))
}
