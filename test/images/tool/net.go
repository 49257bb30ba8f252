// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// serveHTTP: / greets, /hostname, /env/NAME, /echo (sends the body back), /headers, /exit?code=N.
func serveHTTP(args []string) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "hello from %s at %s\n", hostname(), r.URL.Path)
	})
	mux.HandleFunc("GET /hostname", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, hostname()) })
	mux.HandleFunc("GET /env/{name}", func(w http.ResponseWriter,
		r *http.Request) {
		fmt.Fprint(w, os.Getenv(r.PathValue("name")))
	})
	mux.HandleFunc("POST /echo", func(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) })
	mux.HandleFunc("GET /headers", func(w http.ResponseWriter, r *http.Request) { r.Header.Write(w) })
	mux.HandleFunc("GET /exit", func(_ http.ResponseWriter, r *http.Request) {
		code, _ := strconv.Atoi(r.URL.Query().Get("code")) // no number: 0
		os.Exit(code)
	})
	l, err := net.Listen("tcp", arg(args, 0, ":8080"))
	if err != nil {
		return err
	}
	fmt.Println("serving HTTP at", l.Addr())
	return http.Serve(l, mux)
}

func hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return err.Error()
	}
	return name
}

func serveTCP(args []string) error {
	l, err := net.Listen("tcp", arg(args, 0, ":9000"))
	if err != nil {
		return err
	}
	fmt.Println("serving TCP at", l.Addr())
	for {
		conn, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer conn.Close()
			fmt.Fprintln(conn, "welcome to", hostname())
			io.Copy(conn, bufio.NewReader(conn))
		}()
	}
}

func serveUDP(args []string) error {
	conn, err := net.ListenPacket("udp", arg(args, 0, ":9001"))
	if err != nil {
		return err
	}
	fmt.Println("serving UDP at", conn.LocalAddr())
	buf := make([]byte, 64<<10)
	for {
		n, from, err := conn.ReadFrom(buf)
		if err != nil {
			return err
		}
		if _, err := conn.WriteTo(buf[:n], from); err != nil {
			return err
		}
	}
}

// api asks as a program in a pod does: with the files that the service account's volume has.
func api(args []string) error {
	const dir = "/var/run/secrets/kubernetes.io/serviceaccount"
	token, err := os.ReadFile(filepath.Join(dir, "token"))
	if err != nil {
		return err
	}
	ca, err := os.ReadFile(filepath.Join(dir, "ca.crt"))
	if err != nil {
		return err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca) {
		return errors.New("ca.crt holds no certificate")
	}
	req, err := http.NewRequest(http.MethodGet, os.Getenv("API")+arg(args, 0, "/version"), nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	fmt.Println(resp.Status)
	_, err = io.Copy(os.Stdout, resp.Body)
	return err
}
