// SPDX-License-Identifier: Apache-2.0

package procs

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wherryproject/wherry/toolbox/internal/applet"
)

func free(c *applet.Call) error {
	unit := func(n int64) string { return fmt.Sprint(n / 1024) }
	c.Do("h,human", "sizes as 1.5G", func() { unit = applet.Human })
	c.Do("b,bytes", "bytes", func() { unit = func(n int64) string { return fmt.Sprint(n) } })
	c.Do("k,kibi", "units of 1024 bytes (the default)", func() {})
	c.Do("m,mebi", "MiB", func() { unit = func(n int64) string { return fmt.Sprint(n >> 20) } })
	c.Do("g,gibi", "GiB", func() { unit = func(n int64) string { return fmt.Sprint(n >> 30) } })
	if err := c.Parse(0, 0); err != nil {
		return err
	}
	m, err := memory()
	if err != nil {
		return err
	}
	cache := m["Buffers"] + m["Cached"] + m["SReclaimable"]
	c.Printf("%-7s%12s%12s%12s%12s%12s%12s\n", "", "total", "used", "free", "shared", "buff/cache", "available")
	c.Printf("%-7s%12s%12s%12s%12s%12s%12s\n", "Mem:", unit(m["MemTotal"]), unit(m["MemTotal"]-m["MemAvailable"]),
		unit(m["MemFree"]), unit(m["Shmem"]), unit(cache), unit(m["MemAvailable"]))
	c.Printf("%-7s%12s%12s%12s\n", "Swap:", unit(m["SwapTotal"]), unit(m["SwapTotal"]-m["SwapFree"]),
		unit(m["SwapFree"]))
	for _, file := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		text, err := os.ReadFile(file)
		if n, e := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && e == nil &&
			n < m["MemTotal"] {
			c.Printf("This container may use %s (%s).\n", applet.Human(n), file)
		}
	}
	return nil
}

func uptime(c *applet.Call) error {
	if err := c.Parse(0, 0); err != nil {
		return err
	}
	text, err := os.ReadFile("/proc/uptime")
	if err != nil {
		return err
	}
	sec, _ := strconv.ParseFloat(strings.Fields(string(text) + " 0")[0], 64)
	load, _ := os.ReadFile("/proc/loadavg")
	f := strings.Fields(string(load) + " ? ? ?")
	up := time.Duration(sec) * time.Second
	c.Printf(" %s up %s,  load average: %s, %s, %s\n", time.Now().Format(time.TimeOnly), upFor(up), f[0], f[1], f[2])
	return nil
}

// upFor words a time as uptime does: 4 days,  2:03 or 5 min.
func upFor(up time.Duration) string {
	days, hours, minutes := int(up.Hours())/24, int(up.Hours())%24, int(up.Minutes())%60
	text := fmt.Sprintf("%2d:%02d", hours, minutes)
	if hours == 0 {
		text = fmt.Sprintf("%d min", minutes)
	}
	switch {
	case days == 1:
		text = "1 day, " + text
	case days > 1:
		text = fmt.Sprintf("%d days, ", days) + text
	}
	return text
}

func uname(c *applet.Call) error {
	all := c.Bool("a,all", "everything")
	system, node := c.Bool("s,kernel-name", "kernel's name (the default)"), c.Bool("n,nodename", "machine's name")
	release, version := c.Bool("r,kernel-release", "release"), c.Bool("v,kernel-version", "version")
	machine := c.Bool("m,machine", "processor")
	operating := c.Bool("o,operating-system", "operating system")
	if err := c.Parse(0, 0); err != nil {
		return err
	}
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return err
	}
	var out []string
	for _, p := range []struct {
		want bool
		text []byte
	}{{*system, u.Sysname[:]}, {*node, u.Nodename[:]}, {*release, u.Release[:]}, {*version, u.Version[:]},
		{*machine, u.Machine[:]}, {*operating, []byte("GNU/Linux")}} {
		if p.want || *all {
			out = append(out, string(bytes.TrimRight(p.text, "\x00")))
		}
	}
	if len(out) == 0 {
		out = []string{string(bytes.TrimRight(u.Sysname[:], "\x00"))}
	}
	c.Println(strings.Join(out, " "))
	return nil
}

func hostname(c *applet.Call) error {
	short := c.Bool("s,short", "up to the first dot")
	addresses := c.Bool("i,ip-address", "the address /etc/hosts has for it")
	if err := c.Parse(0, 0); err != nil {
		return err
	}
	name, err := os.Hostname()
	if err != nil {
		return err
	}
	if *short {
		name, _, _ = strings.Cut(name, ".")
	}
	if *addresses {
		text, _ := os.ReadFile("/etc/hosts")
		for line := range strings.Lines(string(text)) {
			if f := strings.Fields(line); len(f) > 1 && slices.Contains(f[1:], name) {
				c.Println(f[0])
				return nil
			}
		}
		return fmt.Errorf("%s is not in /etc/hosts", name)
	}
	c.Println(name)
	return nil
}

func dmesg(c *applet.Call) error {
	human := c.Bool("T,ctime", "times of day")
	raw := c.Bool("r,raw", "with the levels in front, as the kernel has them")
	if err := c.Parse(0, 0); err != nil {
		return err
	}
	buf := make([]byte, 16<<20)
	n, err := unix.Klogctl(3, buf) // read all
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("the kernel's messages may not be read (needs CAP_SYSLOG): %w", err)
	}
	if err != nil {
		return err
	}
	boot := bootTime()
	for line := range strings.Lines(string(buf[:n])) {
		if strings.HasPrefix(line, "<") && !*raw {
			if _, after, ok := strings.Cut(line, ">"); ok {
				line = after
			}
		}
		if stamp, rest, ok := strings.Cut(strings.TrimPrefix(line, "["), "] "); ok && *human {
			if sec, err := strconv.ParseFloat(strings.TrimSpace(stamp), 64); err == nil {
				line = "[" + boot.Add(time.Duration(sec*1e9)).Format(time.ANSIC) + "] " + rest
			}
		}
		c.Printf("%s", line)
	}
	return nil
}

func nproc(c *applet.Call) error {
	c.Bool(",all", "does nothing")
	ignore := c.Int(",ignore", "N", 0, "that many fewer, but at least one")
	if err := c.Parse(0, 0); err != nil {
		return err
	}
	c.Println(max(1, runtime.NumCPU()-*ignore))
	return nil
}

func sysctl(c *applet.Call) error {
	bare := c.Bool("n,values", "values only")
	c.Bool("a,all", "all (the default)")
	unknown := c.Bool("e,ignore", "pass over names that are not known")
	if err := c.Parse(0, -1); err != nil {
		return err
	}
	show := func(name string) error {
		text, err := os.ReadFile(filepath.Join("/proc/sys", name))
		if err == nil && !*bare {
			c.Printf("%s = ", strings.ReplaceAll(name, "/", "."))
		}
		if err == nil {
			c.Println(strings.TrimSpace(string(text)))
		}
		return err
	}
	for _, a := range c.Args {
		if strings.Contains(a, "=") {
			return applet.Usage("settings are only read here")
		}
		if err := show(strings.ReplaceAll(a, ".", "/")); err != nil && !(*unknown && errors.Is(err, fs.ErrNotExist)) {
			c.Warn(err)
		}
	}
	if len(c.Args) > 0 {
		return nil
	}
	return filepath.WalkDir("/proc/sys", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			_ = show(strings.TrimPrefix(path, "/proc/sys/")) // many may only be written to
		}
		return nil
	})
}

func tty(c *applet.Call) error {
	silent := c.Bool("s,silent", "print nothing: the exit code says whether it is a terminal")
	if err := c.Parse(0, 0); err != nil {
		return err
	}
	if _, err := unix.IoctlGetTermios(0, unix.TCGETS); err != nil {
		if !*silent {
			c.Println("not a tty")
		}
		return applet.Exit(1)
	}
	if *silent {
		return nil
	}
	name, err := os.Readlink("/proc/self/fd/0")
	if err == nil {
		c.Println(name)
	}
	return err
}

func clearScreen(c *applet.Call) error {
	if err := c.Parse(0, 0); err != nil {
		return err
	}
	c.Printf("\x1b[H\x1b[2J\x1b[3J")
	return nil
}

func printenv(c *applet.Call) error {
	zero := c.Bool("0,null", "end each with a zero byte")
	if err := c.Parse(0, -1); err != nil {
		return err
	}
	end := "\n"
	if *zero {
		end = "\x00"
	}
	if len(c.Args) == 0 {
		for _, e := range os.Environ() {
			c.Printf("%s%s", e, end)
		}
		return nil
	}
	for _, name := range c.Args {
		v, ok := os.LookupEnv(name)
		if !ok {
			c.Failed()
			continue
		}
		c.Printf("%s%s", v, end)
	}
	return nil
}

// duration reads 5, 1.5, 10s, 2m, 1h or 1d.
func duration(text string) (time.Duration, error) {
	unit := time.Second
	number := text
	if n := len(text); n > 0 {
		if u, ok := map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour,
			'd': 24 * time.Hour}[text[n-1]]; ok {
			unit, number = u, text[:n-1]
		}
	}
	v, err := strconv.ParseFloat(number, 64)
	if text == "infinity" || text == "inf" {
		return 1<<63 - 1, nil
	}
	if err != nil || v < 0 {
		return 0, applet.Usage("time %q is not as 5, 1.5, 10s, 2m, 1h, 1d", text)
	}
	return time.Duration(v * float64(unit)), nil
}

func sleep(c *applet.Call) error {
	if err := c.Parse(1, -1); err != nil {
		return err
	}
	var sum time.Duration
	for _, a := range c.Args {
		d, err := duration(a)
		if err != nil {
			return err
		}
		if sum += d; sum < 0 {
			sum = 1<<63 - 1
		}
	}
	time.Sleep(sum)
	return nil
}

func yes(c *applet.Call) error {
	if err := c.Parse(0, -1); err != nil {
		return err
	}
	line := "y"
	if len(c.Args) > 0 {
		line = strings.Join(c.Args, " ")
	}
	for {
		if _, err := c.Out.WriteString(line + "\n"); err != nil {
			return err
		}
	}
}

func which(c *applet.Call) error {
	all := c.Bool("a,all", "all of them")
	if err := c.Parse(1, -1); err != nil {
		return err
	}
	for _, name := range c.Args {
		found := false
		dirs := filepath.SplitList(os.Getenv("PATH"))
		if strings.Contains(name, "/") {
			dirs = []string{""}
		}
		for _, dir := range dirs {
			path := name
			if dir != "" {
				path = filepath.Join(dir, name)
			}
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() &&
				unix.Access(path, unix.X_OK) == nil && (!found || *all) {
				c.Println(path)
				found = true
			}
		}
		if !found {
			c.Failed()
		}
	}
	return nil
}
