// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/wherryproject/wherry/internal/cluster/wire"
)

// Cluster is kube-apiserver as a pod finds it.
type Cluster struct {
	Address string // host:port
	Token   string // file of the service account's token
	CA      string // file of the API server's authority
}

// account is where a pod finds its service account.
const account = "/var/run/secrets/kubernetes.io/serviceaccount/"

// InCluster is the cluster of the pod that this process is in.
func InCluster(getenv func(string) string) (Cluster, error) {
	host, port := getenv("KUBERNETES_SERVICE_HOST"), getenv("KUBERNETES_SERVICE_PORT")
	if host == "" || port == "" {
		return Cluster{}, errors.New("KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set: " +
			"this is not a pod of a cluster; give --cert, --key and --ca to run the agent by hand")
	}
	return Cluster{net.JoinHostPort(host, port), account + "token", account + "ca.crt"}, nil
}

const path = "/apis/certificates.k8s.io/v1/certificatesigningrequests"

// csr is what is read and written of a CertificateSigningRequest.
type csr struct {
	Kind       string `json:"kind,omitempty"`
	APIVersion string `json:"apiVersion,omitempty"`
	Metadata   struct {
		Name            string `json:"name,omitempty"`
		GenerateName    string `json:"generateName,omitempty"`
		ResourceVersion string `json:"resourceVersion,omitempty"`
	} `json:"metadata"`
	Spec struct {
		Request           []byte   `json:"request"`
		SignerName        string   `json:"signerName"`
		ExpirationSeconds int32    `json:"expirationSeconds,omitempty"`
		Usages            []string `json:"usages"`
	} `json:"spec"`
	Status struct {
		Conditions []struct {
			Type    string `json:"type"`
			Message string `json:"message"`
		} `json:"conditions,omitempty"`
		Certificate []byte `json:"certificate,omitempty"`
	} `json:"status,omitzero"`
}

// life is how long a certificate is asked for, in seconds: a day.
const life = 24 * 3600

// signWithin bounds the wait for a signature; then a new request is made.
const signWithin = 10 * time.Minute

// sign has a request signed. It returns what the signer has answered.
func (c Cluster) sign(ctx context.Context, request []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, signWithin)
	defer cancel()
	var r csr
	r.Kind, r.APIVersion = "CertificateSigningRequest", "certificates.k8s.io/v1"
	r.Metadata.GenerateName = "wherry-debug-agent-"
	r.Spec.Request, r.Spec.SignerName, r.Spec.ExpirationSeconds = request, wire.SignerName, life
	r.Spec.Usages = []string{"digital signature", "server auth"}
	text, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	client, err := c.client()
	if err != nil {
		return nil, err
	}
	defer client.CloseIdleConnections()
	var made csr
	body, err := c.do(ctx, client, http.MethodPost, path, text)
	if err != nil {
		return nil, err
	}
	err = json.NewDecoder(io.LimitReader(body, maxObject)).Decode(&made)
	body.Close()
	if err != nil {
		return nil, fmt.Errorf("kube-apiserver's answer cannot be read: %w", err)
	}
	return c.await(ctx, client, made)
}

// maxObject bounds what is read of an object.
const maxObject = 1 << 20

// await watches a request until it is signed or denied. A watch that the server ends is begun again.
func (c Cluster) await(ctx context.Context, client *http.Client, r csr) ([]byte, error) {
	q := url.Values{"watch": {"1"}, "fieldSelector": {"metadata.name=" + r.Metadata.Name}, "resourceVersion": {"0"}}
	for {
		body, err := c.do(ctx, client, http.MethodGet, path+"?"+q.Encode(), nil)
		if err != nil {
			return nil, err
		}
		began := time.Now()
		chain, done, err := watched(body)
		body.Close()
		switch {
		case ctx.Err() != nil:
			return nil, fmt.Errorf("certificate request %s: nobody has signed it: does the API (%s) run?",
				r.Metadata.Name, wire.APIName)
		case err != nil:
			return nil, fmt.Errorf("certificate request %s: %w", r.Metadata.Name, err)
		case done:
			return chain, nil
		case time.Since(began) < time.Second: // not as fast as the server refuses
			return nil, fmt.Errorf("certificate request %s: kube-apiserver does not let it be watched", r.Metadata.Name)
		}
	}
}

// watched reads the events of one request until it is signed or denied, or they end. (Pure, but for reading.)
func watched(events io.Reader) (chain []byte, done bool, err error) {
	for d := json.NewDecoder(events); ; {
		var event struct {
			Type   string
			Object json.RawMessage
		}
		if err := d.Decode(&event); err != nil {
			return nil, false, nil // the watch has ended
		}
		if event.Type == "ERROR" {
			var s struct{ Message string }
			_ = json.Unmarshal(event.Object, &s) // it says nothing then
			return nil, false, fmt.Errorf("watching it: %s", s.Message)
		}
		var r csr
		if err := json.Unmarshal(event.Object, &r); err != nil {
			return nil, false, fmt.Errorf("watching it: %w", err)
		}
		if event.Type == "DELETED" {
			return nil, false, errors.New("it was deleted")
		}
		for _, cond := range r.Status.Conditions {
			if cond.Type == "Denied" || cond.Type == "Failed" {
				return nil, false, fmt.Errorf("it is %s: %s", strings.ToLower(cond.Type), cond.Message)
			}
		}
		if len(r.Status.Certificate) > 0 {
			return r.Status.Certificate, true, nil
		}
	}
}

// client speaks to the API server. Its authority is read anew, for it may have changed.
func (c Cluster) client() (*http.Client, error) {
	text, err := os.ReadFile(c.CA)
	if err != nil {
		return nil, fmt.Errorf("the API server's authority: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("the API server's authority: there is no certificate in %s", c.CA)
	}
	return &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12},
		DialContext:     (&net.Dialer{Timeout: 30 * time.Second}).DialContext, TLSHandshakeTimeout: 30 * time.Second,
	}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}, nil
}

// do makes a request. The caller closes the body.
func (c Cluster) do(ctx context.Context, client *http.Client, method, path string, body []byte) (io.ReadCloser, error) {
	token, err := os.ReadFile(c.Token)
	if err != nil {
		return nil, fmt.Errorf("the service account's token: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, method, "https://"+c.Address+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	req.Header.Set("Accept", "application/json")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	answer, err := client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("kube-apiserver: %w", err)
	}
	if answer.StatusCode/100 == 2 {
		return answer.Body, nil
	}
	defer answer.Body.Close()
	var s struct{ Message string }
	_ = json.NewDecoder(io.LimitReader(answer.Body, maxObject)).Decode(&s) // the status says enough
	return nil, fmt.Errorf("kube-apiserver: %s: %s", answer.Status, s.Message)
}
