# frameproof as one static binary, in an image that has nothing else: no shell, no root.
#
#   docker build -t frameproof .
#   docker run --rm -v "$PWD:/work" frameproof run minicodex --url ws://host.docker.internal:8765/ws
FROM rust:1-alpine AS build
# hadolint ignore=DL3018
RUN apk add --no-cache build-base
WORKDIR /source
COPY . .
RUN cargo build --profile dist --locked && mkdir -p /image/work /image/tmp && chmod 1777 /image/work /image/tmp \
    && cp target/dist/frameproof /image/

FROM scratch
COPY --from=build /image/ /
USER 65532:65532
WORKDIR /work
ENTRYPOINT ["/frameproof"]
CMD ["--help"]
