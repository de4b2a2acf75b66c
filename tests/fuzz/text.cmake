deeptail_fuzz(tokenizer USES deeptail_text)
