deeptail_fuzz(tokenizer USES deeptail_text)
deeptail_fuzz(pattern USES deeptail_patterns)
