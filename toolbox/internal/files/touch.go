// SPDX-License-Identifier: Apache-2.0

package files

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wherryproject/wherry/toolbox/internal/applet"
)

func touch(c *applet.Call) error {
	never := c.Bool("c,no-create", "make no files")
	like := c.String("r,reference", "FILE", "", "take that file's times")
	at := c.String("d,date", "TIME", "", "use this time, for example 2006-01-02 15:04:05, RFC 3339 or @seconds")
	stamp := c.String("t", "[[CC]YY]MMDDhhmm[.ss]", "", "use this time")
	read, changed := c.Bool("a", "the time of reading only"), c.Bool("m", "the time of changing only")
	link := c.Bool("h,no-dereference", "change links, not what they point to")
	if err := c.Parse(1, -1); err != nil {
		return err
	}
	times, err := touchTimes(*like, *at, *stamp)
	if err != nil {
		return err
	}
	switch {
	case *read && !*changed:
		times[1].Nsec = unix.UTIME_OMIT
	case *changed && !*read:
		times[0].Nsec = unix.UTIME_OMIT
	}
	flags := 0
	if *link {
		flags = unix.AT_SYMLINK_NOFOLLOW
	}
	for _, path := range c.Args {
		err := unix.UtimesNanoAt(unix.AT_FDCWD, path, times, flags)
		if errors.Is(err, fs.ErrNotExist) && !*never && !*link {
			var f *os.File
			if f, err = os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o666); err != nil {
				c.Warn(err)
				continue
			}
			err = errors.Join(f.Close(), unix.UtimesNanoAt(unix.AT_FDCWD, path, times, flags))
		}
		if err != nil && !(*never && errors.Is(err, fs.ErrNotExist)) {
			c.Warn(&fs.PathError{Op: "touch", Path: path, Err: err})
		}
	}
	return nil
}

// touchTimes are the times of reading and of changing that are wanted; without any, it is now.
func touchTimes(like, at, stamp string) ([]unix.Timespec, error) {
	var when time.Time
	var err error
	switch {
	case like != "":
		info, err := os.Stat(like)
		if err != nil {
			return nil, err
		}
		if st, ok := info.Sys().(*syscall.Stat_t); ok {
			return []unix.Timespec{{Sec: st.Atim.Sec, Nsec: st.Atim.Nsec}, {Sec: st.Mtim.Sec, Nsec: st.Mtim.Nsec}}, nil
		}
		when = info.ModTime()
	case at != "":
		when, err = ParseTime(at)
	case stamp != "":
		when, err = parseStamp(stamp)
	default:
		return []unix.Timespec{{Nsec: unix.UTIME_NOW}, {Nsec: unix.UTIME_NOW}}, nil
	}
	if err != nil {
		return nil, applet.Usage("%v", err)
	}
	t := unix.NsecToTimespec(when.UnixNano())
	return []unix.Timespec{t, t}, nil
}

// parseStamp reads [[CC]YY]MMDDhhmm[.ss].
func parseStamp(text string) (time.Time, error) {
	minutes, _, seconds := strings.Cut(text, ".")
	layout := map[int]string{8: "01021504", 10: "0601021504", 12: "200601021504"}[len(minutes)]
	if seconds && layout != "" {
		layout += ".05"
	}
	t, err := time.ParseInLocation(layout, text, time.Local)
	if err != nil || layout == "" {
		return t, fmt.Errorf("time %q is not as [[CC]YY]MMDDhhmm[.ss]", text)
	}
	if t.Year() == 0 {
		t = t.AddDate(time.Now().Year(), 0, 0)
	}
	return t, nil
}

// ParseTime reads a point in time, in this machine's zone unless it names one.
func ParseTime(text string) (time.Time, error) {
	if text == "now" {
		return time.Now(), nil
	}
	if sec, ok := strings.CutPrefix(text, "@"); ok {
		if n, err := strconv.ParseFloat(sec, 64); err == nil && math.Abs(n) < math.MaxInt64/1e9 {
			return time.Unix(0, int64(n*1e9)), nil
		}
	}
	for _, layout := range []string{time.RFC3339Nano, time.DateTime, "2006-01-02 15:04", time.DateOnly,
		"2006-01-02T15:04:05", time.RFC1123Z, time.UnixDate} {
		if t, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return t, nil
		}
	}
	for _, layout := range []string{time.TimeOnly, "15:04"} { // today
		if t, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			now := time.Now()
			return time.Date(now.Year(), now.Month(), now.Day(), t.Hour(), t.Minute(), t.Second(), 0, time.Local), nil
		}
	}
	return time.Time{}, fmt.Errorf("time %q is not one of 2006-01-02 15:04:05, 2006-01-02T15:04:05Z, @seconds", text)
}
