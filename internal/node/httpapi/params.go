// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// streamOptions say which standard streams a client of exec or attach wants.
type streamOptions struct {
	Stdin, Stdout, Stderr, TTY bool
}

// parseStreams reads the kubelet's names for them. A terminal has no stderr of its own, so that is not asked for then.
func parseStreams(q url.Values) (streamOptions, error) {
	s := streamOptions{
		Stdin:  q.Get("input") == "1",
		Stdout: q.Get("output") == "1",
		Stderr: q.Get("error") == "1",
		TTY:    q.Get("tty") == "1",
	}
	if s.TTY {
		s.Stderr = false
	}
	if !s.Stdin && !s.Stdout && !s.Stderr {
		return s, errors.New("you must specify at least 1 of stdin, stdout, stderr")
	}
	return s, nil
}

// parsePorts reads port=1,2&port=3, as WebSocket clients of the old protocol give it; SPDY clients name ports later.
func parsePorts(q url.Values) ([]int32, error) {
	var ports []int32
	for _, list := range q["port"] {
		for _, p := range strings.Split(list, ",") {
			n, err := strconv.ParseUint(p, 10, 16)
			if err != nil || n == 0 {
				return nil, fmt.Errorf("unable to parse %q as a port", p)
			}
			ports = append(ports, int32(n))
		}
	}
	return ports, nil
}

// parseLogOptions reads the query of containerLogs. Unknown names are left alone, as the kubelet does.
func parseLogOptions(q url.Values) (*corev1.PodLogOptions, error) {
	o := &corev1.PodLogOptions{}
	for name, into := range map[string]*bool{"follow": &o.Follow, "previous": &o.Previous,
		"timestamps": &o.Timestamps} {
		v, ok := one(q, name)
		if !ok {
			continue
		}
		b, err := strconv.ParseBool(v)
		if err != nil {
			return nil, fmt.Errorf("%s: %q is neither true nor false", name, v)
		}
		*into = b
	}
	for _, n := range []struct {
		name  string
		least int64
		into  **int64
	}{{"sinceSeconds", 1, &o.SinceSeconds}, {"tailLines", 0, &o.TailLines}, {"limitBytes", 1, &o.LimitBytes}} {
		v, ok := one(q, n.name)
		if !ok {
			continue
		}
		i, err := strconv.ParseInt(v, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%s: %q is not a number", n.name, v)
		}
		if i < n.least {
			return nil, fmt.Errorf("%s: must be %d or more", n.name, n.least)
		}
		*n.into = &i
	}
	if err := parseSinceTime(q, o); err != nil {
		return nil, err
	}
	return o, parseStream(q, o)
}

func parseSinceTime(q url.Values, o *corev1.PodLogOptions) error {
	v, ok := one(q, "sinceTime")
	if !ok {
		return nil
	}
	t, err := time.Parse(time.RFC3339, v)
	if err != nil {
		return fmt.Errorf("sinceTime: %q is not a time like 2006-01-02T15:04:05Z", v)
	}
	if o.SinceSeconds != nil {
		return errors.New("at most one of sinceTime or sinceSeconds may be specified")
	}
	o.SinceTime = &metav1.Time{Time: t}
	return nil
}

func parseStream(q url.Values, o *corev1.PodLogOptions) error {
	v, ok := one(q, "stream")
	if !ok {
		return nil
	}
	switch v {
	case corev1.LogStreamAll, corev1.LogStreamStdout, corev1.LogStreamStderr:
		o.Stream = &v
	default:
		return fmt.Errorf("stream: %q is not one of All, Stdout, Stderr", v)
	}
	if v != corev1.LogStreamAll && o.TailLines != nil {
		return errors.New("tailLines: cannot be combined with one stream only")
	}
	return nil
}

// one gives a parameter that was given and is not empty.
func one(q url.Values, name string) (string, bool) {
	v := q.Get(name)
	return v, v != ""
}
