// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"strings"
	"time"
)

// serve answers probes of one kind at a port, beside all else. Being asked for /tell/WHAT by HTTP writes WHAT down.
func (j journal) serve(what string) error {
	kind, port, _ := strings.Cut(what, ":")
	l, err := net.Listen("tcp", ":"+port)
	if err != nil {
		return err
	}
	s := &http.Server{Handler: j.handler()}
	switch kind {
	case "http":
		go s.Serve(l)
	case "https":
		cert, err := selfSigned()
		if err != nil {
			return err
		}
		s.TLSConfig = &tls.Config{Certificates: []tls.Certificate{cert}}
		go s.ServeTLS(l, "", "")
	case "grpc":
		s.Handler = http.HandlerFunc(j.health)
		s.Protocols = new(http.Protocols)
		s.Protocols.SetUnencryptedHTTP2(true)
		go s.Serve(l)
	case "tcp":
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				c.Close()
			}
		}()
	default:
		return fmt.Errorf("serve %s?", kind)
	}
	return nil
}

func (j journal) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /", func(w http.ResponseWriter, r *http.Request) {
		if there(j.file("sick")) {
			http.Error(w, j.who+" is sick", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "well", r.Header.Get("X-Test"))
	})
	mux.HandleFunc("GET /tell/{what}", func(_ http.ResponseWriter,
		r *http.Request) {
		j.tell("%s", r.PathValue("what"))
	})
	return mux
}

// health is the Check of grpc.health.v1, by hand: a message of one number, framed, and the call's status as a trailer.
func (j journal) health(w http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "application/grpc")
	w.Header().Set("Trailer", "Grpc-Status")
	const serving, notServing = 1, 2
	status := byte(serving)
	if there(j.file("sick")) {
		status = notServing
	}
	w.Write([]byte{0, 0, 0, 0, 2, 1 << 3, status})
	w.Header().Set("Grpc-Status", "0")
}

// selfSigned makes a certificate that nobody can verify, as probes do not.
func selfSigned() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(24 * time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}
