// SPDX-License-Identifier: Apache-2.0

package procs

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/wherryproject/wherry/toolbox/internal/applet"
	"github.com/wherryproject/wherry/toolbox/internal/files"
)

func date(c *applet.Call) error {
	utc := c.Bool("u,utc", "in UTC")
	given := c.String("d,date", "TIME", "now", "this time, for example 2006-01-02 15:04:05 or @seconds")
	like := c.String("r,reference", "FILE", "", "the time at which a file was changed")
	iso, rfc := c.Maybe("I,iso-8601", "as 2006-01-02; -Ihours, -Iminutes, -Iseconds with the time"),
		c.Bool("R,rfc-email", "as Mon, 02 Jan 2006 15:04:05 -0700")
	if err := c.Parse(0, 1); err != nil {
		return err
	}
	t, err := files.ParseTime(*given)
	if err != nil {
		return applet.Usage("%v", err)
	}
	if *like != "" {
		info, err := os.Stat(*like)
		if err != nil {
			return err
		}
		t = info.ModTime()
	}
	if *utc {
		t = t.UTC()
	}
	switch {
	case *iso != nil:
		layout, ok := map[string]string{"": time.DateOnly, "date": time.DateOnly, "hours": "2006-01-02T15-07:00",
			"minutes": "2006-01-02T15:04-07:00", "seconds": "2006-01-02T15:04:05-07:00",
			"ns": "2006-01-02T15:04:05,000000000-07:00"}[**iso]
		if !ok {
			return applet.Usage("-I%s: it is one of date, hours, minutes, seconds, ns", **iso)
		}
		c.Println(t.Format(layout))
	case *rfc:
		c.Println(t.Format(time.RFC1123Z))
	case len(c.Args) == 1 && c.Args[0] != "" && c.Args[0][0] == '+':
		c.Println(strftime(t, c.Args[0][1:]))
	case len(c.Args) == 1:
		return applet.Usage("%q does not begin with +; the clock cannot be set", c.Args[0])
	default:
		c.Println(t.Format("Mon Jan _2 15:04:05 MST 2006"))
	}
	return nil
}

// strftime words a time by a format as date +FORMAT has it.
func strftime(t time.Time, format string) string {
	layouts := map[byte]string{'Y': "2006", 'm': "01", 'd': "02", 'H': "15", 'M': "04", 'S': "05", 'y': "06", 'e': "_2",
		'b': "Jan", 'h': "Jan", 'B': "January", 'a': "Mon", 'A': "Monday", 'I': "03", 'p': "PM", 'z': "-0700",
		'Z': "MST", 'F': time.DateOnly, 'T': time.TimeOnly, 'R': "15:04", 'D': "01/02/06", 'c': time.ANSIC, 'j': "002",
		'r': "03:04:05 PM", 'x': "01/02/06", 'X': time.TimeOnly}
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		i++
		switch ch := format[i]; {
		case ch == 's':
			b.WriteString(strconv.FormatInt(t.Unix(), 10))
		case ch == 'N':
			fmt.Fprintf(&b, "%09d", t.Nanosecond())
		case ch == 'n':
			b.WriteByte('\n')
		case ch == 't':
			b.WriteByte('\t')
		case ch == '%':
			b.WriteByte('%')
		case ch == 'u':
			fmt.Fprint(&b, (int(t.Weekday())+6)%7+1)
		case ch == 'w':
			fmt.Fprint(&b, int(t.Weekday()))
		case ch == 'V':
			_, week := t.ISOWeek()
			fmt.Fprintf(&b, "%02d", week)
		case ch == 'G':
			year, _ := t.ISOWeek()
			fmt.Fprint(&b, year)
		case ch == 'g':
			year, _ := t.ISOWeek()
			fmt.Fprintf(&b, "%02d", year%100)
		case ch == 'C':
			fmt.Fprintf(&b, "%02d", t.Year()/100)
		case ch == 'k':
			fmt.Fprintf(&b, "%2d", t.Hour())
		case ch == 'l':
			fmt.Fprintf(&b, "%2d", (t.Hour()+11)%12+1)
		case ch == 'U': // weeks that begin with a Sunday
			fmt.Fprintf(&b, "%02d", (t.YearDay()+6-int(t.Weekday()))/7)
		case ch == 'W': // weeks that begin with a Monday
			fmt.Fprintf(&b, "%02d", (t.YearDay()+6-(int(t.Weekday())+6)%7)/7)
		case layouts[ch] != "":
			b.WriteString(t.Format(layouts[ch]))
		default:
			b.WriteString(format[i-1 : i+1])
		}
	}
	return b.String()
}
