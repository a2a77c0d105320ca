# The dashboard on the CPU. Build: docker build -t headviz .   Also serves as a Space of the Docker kind.
FROM python:3.12-slim@sha256:78387bc3881b8273120a12ebe6c1ab22b018ccc2c9adf565ae1ac9b536e184ea
RUN useradd --create-home --uid 1000 headviz
# every file by its hash; torch is the CPU build, a tenth of the size of the one with GPU libraries
COPY requirements.lock /build/
RUN pip install --no-cache-dir --require-hashes --extra-index-url https://download.pytorch.org/whl/cpu -r /build/requirements.lock
COPY pyproject.toml setup.py MANIFEST.in README.md LICENSE app.py /build/
COPY .streamlit /build/.streamlit
COPY pages /build/pages
COPY src /build/src
# setuptools, which builds it, is in the lock
RUN pip install --no-cache-dir --no-deps --no-build-isolation /build && rm -r /build
USER headviz
WORKDIR /home/headviz
RUN mkdir cache
ENV HEADVIZ_HOME=/home/headviz/cache \
    HEADVIZ_ROOTS=/models:/data \
    PYTHONUNBUFFERED=1
VOLUME /home/headviz/cache
EXPOSE 8501
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s \
    CMD python -c "from urllib.request import urlopen; urlopen('http://127.0.0.1:8501/_stcore/health', timeout=4)"
CMD ["headviz", "demo", "--headless", "--address", "0.0.0.0"]
