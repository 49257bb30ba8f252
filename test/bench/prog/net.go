// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// serve takes connections and ends each with one byte.
func serve(address string) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			_, _ = c.Write([]byte{'x'}) // whoever does not read it is measured badly, and says so
			c.Close()
		}()
	}
}

// connectMany makes so many connections, some at a time, and prints how long all of them took and the median of one.
func connectMany(address, count, wide string) error {
	return many(count, wide, func() (func() error, error) {
		return func() error {
			c, err := net.Dial("tcp", address)
			if err != nil {
				return err
			}
			defer c.Close()
			_, err = c.Read(make([]byte, 1))
			return err
		}, nil
	})
}

// askMany asks the first resolver so many times for an address of a name, some at a time, and prints the same.
func askMany(name, count, wide string) error {
	server, err := resolver()
	if err != nil {
		return err
	}
	asked, err := dnsmessage.NewName(name + ".")
	if err != nil {
		return err
	}
	question := dnsmessage.Message{Header: dnsmessage.Header{RecursionDesired: true}, Questions: []dnsmessage.Question{
		{Name: asked, Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET}}}
	packet, err := question.Pack()
	if err != nil {
		return err
	}
	return many(count, wide, func() (func() error, error) {
		c, err := net.Dial("udp", net.JoinHostPort(server, "53"))
		buffer := make([]byte, 1500)
		return func() error {
			if _, err := c.Write(packet); err != nil {
				return err
			}
			_ = c.SetReadDeadline(time.Now().Add(2 * time.Second))
			n, err := c.Read(buffer)
			if err != nil {
				return err
			}
			var answer dnsmessage.Message
			if err := answer.Unpack(buffer[:n]); err != nil || len(answer.Answers) == 0 {
				return fmt.Errorf("no answer for %s: %w", name, err)
			}
			return nil
		}, err
	})
}

// resolver is the first that the container has been told of.
func resolver() (string, error) {
	text, err := os.ReadFile("/etc/resolv.conf")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "nameserver "); ok {
			return strings.TrimSpace(rest), nil
		}
	}
	return "", errors.New("/etc/resolv.conf names no resolver")
}

// many does something so many times, by so many workers, each of which makes its own way of doing it.
func many(count, wide string, worker func() (func() error, error)) error {
	n, err := strconv.Atoi(count)
	if err != nil {
		return err
	}
	w, err := strconv.Atoi(wide)
	if err != nil || w < 1 {
		return fmt.Errorf("%q workers: %w", wide, err)
	}
	took := make([][]time.Duration, w)
	errs := make([]error, w)
	var wg sync.WaitGroup
	begun := time.Now()
	for i := range w {
		wg.Go(func() {
			do, err := worker()
			for j := 0; j < n/w && err == nil; j++ {
				at := time.Now()
				err = do()
				took[i] = append(took[i], time.Since(at))
			}
			errs[i] = err
		})
	}
	wg.Wait()
	all := time.Since(begun)
	if err := errors.Join(errs...); err != nil {
		return err
	}
	each := slices.Sorted(slices.Values(slices.Concat(took...)))
	fmt.Println(all.Nanoseconds(), each[len(each)/2].Nanoseconds(), len(each))
	return nil
}

// until returns when a name is known and something answers there.
func until(address string) {
	for {
		c, err := net.DialTimeout("tcp", address, 200*time.Millisecond)
		if err == nil {
			_, err = c.Read(make([]byte, 1))
			c.Close()
		}
		if err == nil {
			return
		}
		time.Sleep(5 * time.Millisecond) // nobody tells a pod that a name has come
	}
}
